#!/bin/sh
# bochs.sh CPU [VARIABLE=VALUE]... TEST... - runs test programs on an emulated CPU, to see on any machine what
# kernels for AVX-512 and AMX compute; some fifty times slower than here. CPU is a model that Bochs has (bochs
# --help cpu), such as sapphire_rapids (AVX-512 with bf16 and fp16, AMX) or corei7_skylake_x. A TEST is a
# program below build/tests with its arguments, such as "backends/test_direct_gemm --filter=*/*avx512" or
# "conformance --backend direct tests/conformance/gen.json.gz". Prints what they print, and ends with "N
# passed, M failed". VARIABLE=VALUE, without spaces, is in the environment of all. The emulated machine has one
# core, and its clock is not the time.
#
# Bochs 3.0 computes vcvtne2ps2bf16, of AVX512_BF16, wrongly: its upper half is the lower half again. What uses
# it cannot be tested there: oneDNN's bf16 filter gradients for AMX (four cases of conformance fail), and
# direct's row kernels where they store bf16. Bochs 3.1 does not start this kernel (a clock of 0 Hz).
#
# bochs.sh --kernel - first, once: builds the Linux kernel that the emulated machine runs (ten minutes).
#
# Needs Bochs 3.0 (Debian 13; BOCHS names it, BXSHARE the folder of its BIOS, VGABIOS that of its display),
# xorriso, isolinux, mke2fs, busybox (static), and for the kernel linux-source 6.1, flex, bison, bc and
# libelf-dev. Works in BOCHS_DIR (default: build/bochs), one run at a time; the kernel is there, or at KERNEL.
set -eu
cd "$(dirname "$0")/.."
dir=${BOCHS_DIR:-build/bochs}
kernel=${KERNEL:-$dir/bzImage}
PATH=$PATH:/usr/sbin:/sbin
isolinux=/usr/lib/ISOLINUX/isolinux.bin
menu=/usr/lib/syslinux/modules/bios/ldlinux.c32

need() {
    for file; do
        [ -e "$file" ] || command -v "$file" >/dev/null || {
            echo "bochs.sh: $file is missing (the head of tests/bochs.sh says what is needed)" >&2
            exit 1
        }
    done
}

# Of a kernel without modules: what the machine has, and what test programs ask of a system.
options="64BIT SMP PRINTK TTY SERIAL_8250 SERIAL_8250_CONSOLE BLOCK PCI ATA ATA_SFF ATA_BMDMA ATA_PIIX SCSI
    BLK_DEV_SD EXT4_FS PROC_FS PROC_SYSCTL SYSFS DEVTMPFS DEVTMPFS_MOUNT TMPFS SHMEM BINFMT_ELF BINFMT_SCRIPT
    FUTEX EPOLL SIGNALFD TIMERFD EVENTFD POSIX_TIMERS MULTIUSER FILE_LOCKING ADVISE_SYSCALLS MEMBARRIER
    MEMFD_CREATE NET UNIX INET HPET_TIMER HIGH_RES_TIMERS UNIX98_PTYS TRANSPARENT_HUGEPAGE SLUB KERNEL_GZIP
    CC_OPTIMIZE_FOR_PERFORMANCE"

# Bochs has AMX without XFD, by which Linux gives tiles to those programs alone that ask for them, and Linux
# then has none: here every program has them from its start.
give_tiles_to_all() {
    sed -i -e '/cpu_feature_enabled(X86_FEATURE_XFD))$/{N;/USER_DYNAMIC/d}' \
        -e '/default_features &= ~XFEATURE_MASK_USER_DYNAMIC/d' \
        -e 's/init_fpstate.xfd = .*/init_fpstate.xfd = 0;/' "$1/arch/x86/kernel/fpu/xstate.c"
    sed -i 's/__padding\[PAGE_SIZE\]/__padding[4 * PAGE_SIZE]/' "$1/arch/x86/include/asm/fpu/types.h"
    if grep -q 'features &= ~XFEATURE_MASK_USER_DYNAMIC' "$1/arch/x86/kernel/fpu/xstate.c" ||
        ! grep -q 'fpstate.xfd = 0' "$1/arch/x86/kernel/fpu/xstate.c" ||
        ! grep -q '4 [*] PAGE_SIZE' "$1/arch/x86/include/asm/fpu/types.h"; then
        echo "bochs.sh: this kernel's source is another than 6.1's, and would have no AMX" >&2
        exit 1
    fi
}

build_kernel() {
    archive=$(find /usr/src -name 'linux-source-*.tar.xz' | sort -V | tail -n 1)
    need "${archive:-linux-source}" flex bison bc
    rm -rf "$dir/linux"
    mkdir -p "$dir/linux"
    tar -C "$dir/linux" --strip-components=1 -xf "$archive"
    give_tiles_to_all "$dir/linux"
    make -s -C "$dir/linux" tinyconfig >/dev/null
    for option in SLOB KERNEL_XZ CC_OPTIMIZE_FOR_SIZE; do # tinyconfig's choices instead of some of these
        "$dir/linux/scripts/config" --file "$dir/linux/.config" --disable "$option"
    done
    for option in $options; do
        "$dir/linux/scripts/config" --file "$dir/linux/.config" --enable "$option"
    done
    make -s -C "$dir/linux" olddefconfig
    make -s -C "$dir/linux" -j "$(nproc)" bzImage
    cp "$dir/linux/arch/x86/boot/bzImage" "$kernel"
    rm -rf "$dir/linux"
}

# The root: the programs, what they read and load, where they are here, and /init.
make_disk() {
    root=$dir/root here=$dir/root$PWD
    rm -rf "$root"
    mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/lib64" "$here/build/tests"
    cp "$(command -v busybox)" "$root/bin/busybox"
    cp -r tests "$here/"
    cp -r build/tests/no_libgit2 "$here/build/tests/"
    for test; do
        program=${test%% *}
        mkdir -p "$(dirname "$here/build/tests/$program")"
        cp "build/tests/$program" "$here/build/tests/$program"
        LD_LIBRARY_PATH=build/tests/no_libgit2 ldd "build/tests/$program" || true # static
    done | awk '/=> \// { print $3 } $1 ~ /^\// { print $1 }' | sort -u | grep -v no_libgit2 |
        while read -r library; do
            mkdir -p "$root$(dirname "$library")"
            cp -L "$library" "$root$library"
        done
    cat >"$root/init"
    chmod +x "$root/init"
    rm -f "$dir/disk.img"
    mke2fs -q -t ext4 -O ^has_journal -d "$root" "$dir/disk.img" \
        "$(($(du -sm "$root" | cut -f 1) * 5 / 4 + 64))M" >/dev/null
    rm -rf "$root"
}

# fsrm: Bochs' fast strings are off, and then Linux' memmove mistakes what is left of them. no5lvl, acpi: its
# BIOS knows neither five levels of pages nor how to end.
make_boot() {
    mkdir -p "$dir/iso/isolinux"
    cp "$isolinux" "$menu" "$dir/iso/isolinux/"
    cp "$kernel" "$dir/iso/vmlinuz"
    printf '%s\n' 'SERIAL 0 115200' 'DEFAULT linux' 'PROMPT 0' 'TIMEOUT 1' 'LABEL linux' 'KERNEL /vmlinuz' \
        'APPEND root=/dev/sda rw init=/init console=ttyS0 clearcpuid=fsrm no5lvl acpi=off mitigations=off quiet panic=-1' \
        >"$dir/iso/isolinux/isolinux.cfg"
    xorriso -as mkisofs -quiet -o "$dir/boot.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat \
        -no-emul-boot -boot-load-size 4 -boot-info-table "$dir/iso" 2>"$dir/output"
    rm -rf "$dir/iso"
}

# The serial line's text without colors and carriage returns.
plain() {
    sed -u 's/\r//g; s/\x1b\[[0-9;]*m//g'
}

# The emulated machine's start: one program after the other, on the serial line.
write_init() {
    cat <<F
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
ifconfig lo up
exec >/dev/ttyS0 2>&1
echo "== cpu: \$(grep -m 1 flags /proc/cpuinfo | tr ' ' '\\n' | grep -E 'avx|amx' | tr '\\n' ' ')"
cd '$PWD'
export BUILD=build HOME=/tmp OMP_WAIT_POLICY=passive LD_LIBRARY_PATH=build/tests/no_libgit2
export CRITERION_JOBS=1 CRITERION_VERBOSITY_LEVEL=1 $environment
F
    for test; do
        echo "echo '== $test'; build/tests/$test; s=\$?; echo; echo \"== ended with \$s\""
    done
    echo 'echo "== the last"; sleep 1; echo; poweroff -f'
}

if [ "${1:-}" = --kernel ]; then
    build_kernel
    exit 0
fi
cpu=${1:-} environment=
[ $# -eq 0 ] || shift
while expr "${1:-}" : '[A-Za-z_][A-Za-z_0-9]*=' >/dev/null; do
    environment="$environment $1"
    shift
done
if [ $# -eq 0 ]; then
    echo "usage: tests/bochs.sh CPU [VARIABLE=VALUE]... TEST..." >&2
    exit 3
fi
if [ ! -e "$kernel" ]; then
    echo "bochs.sh: there is no kernel yet ($kernel; tests/bochs.sh --kernel builds it)" >&2
    exit 1
fi
need "${BOCHS:-bochs}" xorriso mke2fs busybox "$isolinux" "$menu"
for test; do
    need "build/tests/${test%% *}"
done
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
case $dir$PWD in
*[!A-Za-z0-9_./-]*)
    echo "bochs.sh: Bochs' settings take no such path (got $dir and $PWD, expected letters, digits and _./-)" >&2
    exit 1
    ;;
esac
if ! mkdir "$dir/running"; then
    echo "bochs.sh: another run is at work in $dir, or was killed there (BOCHS_DIR names another folder)" >&2
    exit 1
fi
bochs=
clean_up() {
    [ -z "$bochs" ] || kill "$bochs" 2>/dev/null || true
    rmdir "$dir/running"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
write_init "$@" | make_disk "$@"
make_boot
cat >"$dir/bochsrc" <<F
cpu: model=$cpu, count=1, ips=100000000, reset_on_triple_fault=0
memory: guest=2048, host=2048
romimage: file=${BXSHARE:-/usr/share/bochs}/BIOS-bochs-latest
vgaromimage: file=${VGABIOS:-/usr/share/vgabios}/vgabios.bin
ata0-master: type=disk, path=$dir/disk.img, mode=flat
ata1: enabled=1, ioaddr1=0x170, ioaddr2=0x370, irq=15
ata1-master: type=cdrom, path=$dir/boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$dir/serial
log: $dir/log
panic: action=fatal
error: action=ignore
info: action=ignore
display_library: rfb, options="timeout=0"
sound: driver=dummy
clock: sync=none
F
rm -f "$dir/serial" "$dir"/*.lock
touch "$dir/serial"
"${BOCHS:-bochs}" -q -f "$dir/bochsrc" >"$dir/output" 2>&1 </dev/null &
bochs=$!
tail -f --pid="$bochs" "$dir/serial" | plain | sed -un '/^==/,$p; /^== the last/q; /^Kernel panic/q' &
wait $! || true
kill "$bochs" 2>/dev/null || true
if ! plain <"$dir/serial" | grep -q '^== the last'; then
    echo "bochs.sh: the emulated machine ended early; $dir/serial, output and log say more:" >&2
    tail -n 3 "$dir/serial" "$dir/output" "$dir/log" >&2 || true
fi
plain <"$dir/serial" | awk -v tests=$# '
    /Synthesis:/ { gsub(/[^0-9 ]/, ""); passed += $2; failed += $3 + $4; counted = $1 }
    /^[0-9]+ passed, [0-9]+ failed/ { passed += $1; failed += $3; counted = $1 + $3 }
    /^== ended/ { ended++; failed += !counted || ($4 != 0 && failed == known); counted = 0; known = failed }
    END { failed += tests - ended; print passed + 0 " passed, " failed + 0 " failed"; exit failed > 0 }'
