"""Small training runs on made-up data, to read and to try: each module has a ``main``."""
