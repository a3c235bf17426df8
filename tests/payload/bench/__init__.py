"""The benchmarks on this machine's CPU, and their way on GPUs that are pretended."""
