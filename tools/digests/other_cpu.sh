#!/bin/sh
# Makes the root of a 64-bit ARM system for `python -m tools.digests --check --root FOLDER`:
#
#     sh tools/digests/other_cpu.sh FOLDER [PYTHON] [SUITE]     # 3.11 of Debian's bookworm
#
# Needs Debian's apt-get, dpkg and keyring, and uv; nothing is installed on this system, and no right to do so is
# needed. What runs it afterwards is qemu-aarch64, of the package qemu-user.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
python=${2:-3.11}
suite=${3:-bookworm}
apt=$folder/apt
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

mkdir -p "$apt/lists/partial" "$apt/archives/partial"
echo "deb [signed-by=$keyring] http://deb.debian.org/debian $suite main" > "$apt/sources.list"
: > "$apt/status"
cat > "$apt/apt.conf" <<END
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "arm64";
APT::Architectures {"arm64";};
APT::Sandbox::User "$(id -un)";
END
export APT_CONFIG="$apt/apt.conf"
apt-get -qq update
apt-get -qq --download-only --no-install-recommends -y install "python$python" libstdc++6
for package in "$apt"/archives/*.deb; do dpkg -x "$package" "$folder"; done
# Newer packages take it for granted that these are links.
for name in bin lib sbin; do [ -e "$folder/$name" ] || ln -s "usr/$name" "$folder/$name"; done

uv pip install --quiet --python-version "$python" --python-platform aarch64-manylinux_2_28 --only-binary :all: \
    --target "$folder/site" -r "$(dirname "$0")/../../pyproject.toml"
echo "$folder has Python $python; try: python -m tools.digests --check --few --root $folder"
