"""The payload of the checks, run as containers run it: by its archive, in processes of its own."""
