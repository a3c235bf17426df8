"""Real parts for the tests: engines, GPUs for them, images, a registry, a terminal, an SSH server; see README.md."""
