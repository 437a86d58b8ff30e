#!/bin/sh
# A Debian package from an installed tree: deb.sh TREE VERSION OUT.deb (TREE was installed with PREFIX=/usr)
set -eu
tree=$1 version=$2 out=$3
mkdir -p "$tree/DEBIAN" "$tree/usr/share/doc/clustersim"
[ ! -e LICENSE ] || install -m 644 LICENSE "$tree/usr/share/doc/clustersim/copyright"
find "$tree/usr/share/man" -name '*.1' -exec gzip -9nf {} +
size=$(du -sk "$tree/usr" | cut -f1)
cat >"$tree/DEBIAN/control" <<CONTROL
Package: clustersim
Version: $version
Section: science
Priority: optional
Architecture: $(dpkg --print-architecture)
Maintainer: clustersim developers <clustersim@localhost>
Installed-Size: $size
Depends: libc6, libglib2.0-0, libcjson1, libexpat1, libyaml-0-2, libsqlite3-0
Recommends: gnuplot-nox, fonts-dejavu-core
Suggests: bash-completion
Description: simulator of GPU clusters that train large models
 Predicts time, throughput, memory and price of a training step from a layout,
 with a range and the source of every number; weeks of training with failures;
 sweeps, pictures and reports. Needs no GPU.
CONTROL
dpkg-deb --root-owner-group --build "$tree" "$out" >/dev/null
echo "$out"
