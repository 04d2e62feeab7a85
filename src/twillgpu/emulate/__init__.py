"""Programs on numbers: the meaning of every op of the tile IR in numpy, and what runs kernels with it."""
