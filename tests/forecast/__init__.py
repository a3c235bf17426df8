"""The forecast against recordings of real runs."""
