"""From a verified schedule to the explicit program of every warp group."""
