#!/usr/bin/env bash
# bash test/chroma/install.sh folder: what the server of the npm package chromadb needs where the system is older.
#
# It needs glibc 2.39. Where that of the system is older, the one of Debian 13 is put into the folder, without installing it:
# TEST_GLIBC=folder/glibc names it for the tests. Without apt-get, the tests are skipped there.
set -euo pipefail

folder=$1
type apt-get >/dev/null 2>&1 || exit 0
version=$(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)
if [ "$(printf '%s\n' 2.39 "$version" | sort -V | head -n 1)" = 2.39 ] || [ -e "$folder/glibc" ]; then exit 0; fi
mkdir -p "$folder/lists/partial"
folder=$(realpath "$folder")
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' 'Origin: Debian' | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$folder/trixie.list"
cd "$folder"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$folder/trixie.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$folder/lists"
  -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache= -o APT::Sandbox::User=root)
"${apt[@]}" update
"${apt[@]}" download libc6 libgcc-s1 libstdc++6
for package in *.deb; do dpkg-deb -x "$package" root; done
mv "$(dirname "$(find root/usr/lib -name ld-linux-*.so.2 -print -quit)")" glibc
