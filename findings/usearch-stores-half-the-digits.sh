#!/usr/bin/env bash
# usearch 2.26.6 (PyPI), seen 2026-11-27.
# Expect: an index gives back the numbers that were added, as 32-bit floats, and a key that it cannot hold is refused.
# (guess: half precision by default, 50 %; a negative key is an error, 60 %)
# Happens: without `dtype` a half-sized type is chosen by the machine: 0.1 comes back as another number in the fourth digit, and
# different vectors have distance 0 and tie. With i8 the vector comes back as 76, 101 for 3, 4. A negative key is stored as 2^64 less.
# Who is bitten: exports from the index, exact checks, near duplicates, L2 over numbers that are not small; the same code gives other
# results on another machine.
# Do: pass dtype='f32', keep the vectors elsewhere, and use keys from 0 on.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv usearch==2.26.6 numpy==2.4.6
venv/bin/python - > seen <<'PROGRAM'
from importlib.metadata import version
import numpy
from usearch.index import Index
print('usearch', version('usearch'))
for name, options in (('default', {}), ('f32', {'dtype': 'f32'})):
    index = Index(ndim=2, metric='l2sq', **options)
    index.add(1, numpy.array([0.1, 0.3], dtype='float32'))
    print(name, 'gives 0.1 and 0.3 back:', index.get(1).tolist() == numpy.array([0.1, 0.3], dtype='float32').tolist())
    index = Index(ndim=1, metric='l2sq', **options)
    index.add(numpy.arange(3), numpy.array([[4096.5], [4097], [4097.5]], dtype='float32'))
    print(name, 'distances from 4097.5:', sorted(index.search(numpy.array([4097.5], dtype='float32'), 3).distances.tolist()))
index = Index(ndim=2, metric='cos', dtype='i8')
index.add(1, numpy.array([3, 4], dtype='float32'))
print('i8 gives 3, 4 back as', index.get(1).tolist())
print('key -5 becomes', index.add(-5, numpy.array([1, 0], dtype='float32')).tolist(), 'in the index:', 2**64 - 5 in index)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
usearch 2.26.6
default gives 0.1 and 0.3 back: False
default distances from 4097.5: [0.0, 0.0, 0.0]
f32 gives 0.1 and 0.3 back: True
f32 distances from 4097.5: [0.0, 0.25, 1.0]
i8 gives 3, 4 back as [76, 101]
key -5 becomes [18446744073709551611] in the index: True
EXPECTED
