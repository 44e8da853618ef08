#!/bin/sh
# Builds LLVM 7.1.0 with the NVPTX target and installs it below a prefix: what
# rustc_codegen_nvvm links to and no current distribution has. The options are
# those of rust-cuda's container images. Some ten minutes on eight cores.
#
#   sudo sh rust-cuda/llvm-7.sh /opt/llvm-7
#   export LLVM_CONFIG=/opt/llvm-7/bin/llvm-config
#
# Needs cmake 3 (4 refuses LLVM 7's policies; seen with 4.4.5), a C++ compiler, make or
# ninja, python3, curl and xz, and the headers of zlib, ncurses, libxml2, libffi and
# libedit.
set -eu
prefix=${1:?usage: llvm-7.sh PREFIX}
release=7.1.0
case $(uname -m) in
    x86_64) host=X86 ;;
    aarch64) host=AArch64 ;;
    *) echo "no LLVM target for $(uname -m)" >&2; exit 1 ;;
esac
if command -v ninja >/dev/null; then
    generator=Ninja
else
    generator='Unix Makefiles'
fi
# The interpreter itself: a `python` or a shim that comes first on PATH may be an
# older one.
if ! python=$(python3 -c 'import sys; print(sys.executable)'); then
    echo "python3 does not run; LLVM's build needs it" >&2
    exit 1
fi
case $(cmake --version | sed -n 's/^cmake version \([0-9]*\).*/\1/p') in
    3) ;;
    *) echo "LLVM 7 needs CMake 3: CMake 4 refuses its policies" >&2; exit 1 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
curl -sSfL -o llvm.tar.xz \
    "https://github.com/llvm/llvm-project/releases/download/llvmorg-$release/llvm-$release.src.tar.xz"
tar -xf llvm.tar.xz
# Headers that the C++ library has not brought in by itself since GCC 11 and 13.
cmake -G "$generator" -S "llvm-$release.src" -B build \
    -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_POLICY_VERSION_MINIMUM=3.5 \
    -DCMAKE_CXX_FLAGS="-include limits -include cstdint" \
    -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DPYTHON_EXECUTABLE="$python" \
    -DLLVM_TARGETS_TO_BUILD="$host;NVPTX" \
    -DLLVM_BUILD_LLVM_DYLIB=ON \
    -DLLVM_LINK_LLVM_DYLIB=ON \
    -DLLVM_ENABLE_ASSERTIONS=OFF \
    -DLLVM_ENABLE_BINDINGS=OFF \
    -DLLVM_INCLUDE_EXAMPLES=OFF \
    -DLLVM_INCLUDE_TESTS=OFF \
    -DLLVM_INCLUDE_BENCHMARKS=OFF \
    -DLLVM_ENABLE_ZLIB=ON \
    -DLLVM_ENABLE_TERMINFO=ON
cmake --build build --parallel "$(nproc)"
cmake --install build
"$prefix/bin/llvm-config" --version
