#!/usr/bin/env python3
"""Makes opendrive_esmini.txt: where esmini's road manager puts the lanes of hand-made roads.

usage: opendrive_vectors.py ESMINI BUILD [FILE.xodr..] > opendrive_esmini.txt

ESMINI is a checkout of github.com/esmini/esmini, BUILD the folder in which its CMake built RoadManager. Without
files those of tests/scenarios/data/opendrive are sampled, which the test reads; any others for
scripts/compare/opendrive.py. A line is `FILE ROAD LANE S X Y`, lane 0 the reference line, all others lanes' centres.
Roads that esmini does not read (lanes given by their borders) are left out.
"""
import pathlib
import subprocess
import sys
import tempfile

SAMPLER = r"""
#include "RoadManager.hpp"
#include <cstdio>
#include <cstdlib>

static void show(roadmanager::Road* road, int lane, double s, const roadmanager::Position& place)
{
    printf("@ %s %d %.12g %.12g %.12g\n", road->GetIdStr().c_str(), lane, s, place.GetX(), place.GetY());
}

int main(int argc, char** argv)
{
    int count = atoi(argv[1]);
    if (argc != 3 || !roadmanager::Position::LoadOpenDrive(argv[2])) {
        return 1;
    }
    roadmanager::OpenDrive* roads = roadmanager::Position::GetOpenDrive();
    for (unsigned i = 0; i < roads->GetNumOfRoads(); i++) {
        roadmanager::Road* road = roads->GetRoadByIdx(i);
        for (unsigned k = 0; k < road->GetNumberOfLaneSections(); k++) {
            roadmanager::LaneSection* section = road->GetLaneSectionByIdx(k);
            for (int n = 0; n < count && section->GetLength() > 0; n++) {
                double s = section->GetS() + section->GetLength() * (n + 0.5) / count;
                roadmanager::Position place;
                place.SetTrackPos(road->GetId(), s, 0.0);
                show(road, 0, s, place);
                for (unsigned m = 0; m < section->GetNumberOfLanes(); m++) {
                    int lane = section->GetLaneByIdx(m)->GetId();
                    if (lane != 0) {
                        place.SetLanePos(road->GetId(), lane, s, 0.0);
                        show(road, lane, s, place);
                    }
                }
            }
        }
    }
    return 0;
}
"""


def build(esmini: pathlib.Path, made: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    source = out / "sampler.cpp"
    source.write_text(SAMPLER)
    modules = esmini / "EnvironmentSimulator/Modules"
    includes = [modules / "RoadManager", modules / "CommonMini"]
    includes += [esmini / "externals" / name for name in ("pugixml", "yaml", "fmt/include")]
    built = made / "EnvironmentSimulator/Modules"
    libraries = [built / "RoadManager/libRoadManager.a", built / "CommonMini/libCommonMini.a",
                 built / "RoadManager/libpugixml_lib.a", made / "externals/fmt/libfmt.a"]
    subprocess.run(["g++", "-std=c++17", "-O1", "-w", *[f"-I{path}" for path in includes], source, *libraries,
                    "-lstdc++fs", "-ldl", "-lpthread", "-o", out / "sampler"], check=True)
    return out / "sampler"


def sample(sampler: pathlib.Path, file: pathlib.Path, count: int) -> list[str]:
    run = subprocess.run([sampler, str(count), file], capture_output=True, text=True, errors="replace", timeout=120)
    return [line[2:] for line in run.stdout.splitlines() if line.startswith("@ ") and line.count(" ") == 5]


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(__file__).resolve().parents[2]
    files = [pathlib.Path(name) for name in sys.argv[3:]]
    own = not files
    files = files or sorted((root / "tests/scenarios/data/opendrive").glob("*.xodr"))
    with tempfile.TemporaryDirectory() as folder:
        sampler = build(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(folder))
        for file in files:
            for line in sample(sampler, file, 8 if own else 20):
                if not (own and line.startswith("border ")):
                    print(file.stem if own else file, line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
