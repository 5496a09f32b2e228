"""Episodes on disk, and windows drawn from them."""
