"""A world of no work: each frame is what it is given. swerve run smoke --world "exec:python3 scripts/world/echo.py"

The shortest complete world, a perfect one as far as geometry goes, and what the protocol itself costs.
"""

import swerve_world


class Echo(swerve_world.World):
    name, version = "echo", "1.0"

    def step(self, states, batch):
        rasters = [given.raster for given in batch]
        return states, [raster.bev for raster in rasters], [raster.cameras for raster in rasters]


if __name__ == "__main__":
    swerve_world.run(Echo())
