// SPDX-License-Identifier: Apache-2.0

// Package ramdisk makes the initrd of an install. It is put together from
// segments, each a cpio archive in newc format, as the kernel allows
// (Documentation/driver-api/early-userspace/buffer-format.rst):
//
//   - the modules segment, made with the image from its own kernel package;
//   - the agent segment, with the agent as /init;
//   - the node segment, with what one node must know (wire.Boot).
//
// So a new agent rebuilds no image, and a boot attempt costs a few hundred bytes.
package ramdisk

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/u-root/u-root/pkg/cpio"
	"github.com/ulikunitz/xz"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// Version changes whenever the same kernel package would give another segment; it
// is part of every image's recipe.
const Version = 1

// maxModule bounds one module after decompression; the largest known is 12 MiB.
const maxModule = 64 << 20

// Size says how large a modules segment became.
type Size struct {
	Modules int      // files
	Plain   int64    // bytes of modules
	Packed  int64    // bytes of the segment
	Absent  []string // wanted modules that this kernel does not have
}

// PackModules writes the modules segment of one kernel release. The modules are those
// of root, an installed system, and are not compressed in it; the segment as a
// whole is, with zstd (the kernel needs CONFIG_RD_ZSTD). It says nothing about
// firmware files: none is included. inMemory: the ramdisk keeps the system in memory, and has what
// that needs besides.
func PackModules(ctx context.Context, w io.Writer, root fs.FS, release string, inMemory bool) (Size, error) {
	if release == "" || path.Base(release) != release {
		return Size{}, errkind.New(errkind.Invalid, "install ramdisk: %q is no kernel release", release)
	}
	t := tree{dir: path.Join("lib/modules", release), root: root, list: wanted}
	if inMemory {
		t.list = slices.Concat(wanted, memoryModules)
	}
	records, size, err := t.records(ctx)
	if err != nil {
		return Size{}, fmt.Errorf("install ramdisk: modules of %s: %w", release, err)
	}
	size.Packed, err = packRecords(w, records)
	if err != nil {
		return Size{}, fmt.Errorf("install ramdisk: %w", err)
	}
	return size, nil
}

// Agent returns the segment with the agent as /init. The program is static, and made
// for processors of the architecture.
func Agent(program []byte, arch inventory.Arch) ([]byte, error) {
	if got := ArchOf(program); got != arch {
		return nil, errkind.New(errkind.Invalid, "install ramdisk: the agent is no ELF program for %s: it is %s", arch, cmp.Or(string(got), "for nothing that is known"))
	}
	var b bytes.Buffer
	_, err := packRecords(&b, []cpio.Record{
		cpio.Directory("dev", 0o755),
		cpio.CharDev("dev/console", 0o600, 5, 1), // the kernel opens it for /init before anything is mounted
		cpio.StaticRecord(program, cpio.Info{Name: "init", Mode: cpio.S_IFREG | 0o755}),
	})
	if err != nil {
		return nil, fmt.Errorf("install ramdisk: agent: %w", err)
	}
	return b.Bytes(), nil
}

// ArchOf reads for which processors a 64-bit ELF program is made; "" for anything else.
func ArchOf(program []byte) inventory.Arch {
	if len(program) < 20 || !bytes.HasPrefix(program, []byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)}) {
		return ""
	}
	switch elf.Machine(binary.LittleEndian.Uint16(program[18:])) { // e_machine
	case elf.EM_X86_64:
		return inventory.AMD64
	case elf.EM_AARCH64:
		return inventory.ARM64
	}
	return ""
}

// NodeSegment returns the segment of one boot attempt, with boot as JSON at
// wire.BootFile, readable by root only: it holds the attempt's token. It is not
// compressed.
func NodeSegment(boot wire.Boot) ([]byte, error) {
	text, err := json.Marshal(boot)
	if err != nil {
		return nil, fmt.Errorf("install ramdisk: %w", err)
	}
	name := strings.TrimPrefix(wire.BootFile, "/")
	var b bytes.Buffer
	err = writeArchive(&b, []cpio.Record{
		cpio.Directory(path.Dir(name), 0o700),
		cpio.StaticRecord(text, cpio.Info{Name: name, Mode: cpio.S_IFREG | 0o600}),
	})
	if err != nil {
		return nil, fmt.Errorf("install ramdisk: node %s: %w", boot.Node, err)
	}
	return padWord(b.Bytes()), nil
}

// padWord appends zeroes up to the next multiple of 4; the kernel skips them.
func padWord(b []byte) []byte { return append(b, make([]byte, (4-len(b)%4)%4)...) }

// writeArchive writes records as a cpio archive, with numbers instead of times and
// inodes that would differ from run to run.
func writeArchive(w io.Writer, records []cpio.Record) error {
	rw := cpio.Newc.Writer(w)
	for i, r := range records {
		r.Ino, r.NLink = uint64(i)+1, 1
		if err := rw.WriteRecord(r); err != nil {
			return err
		}
	}
	return cpio.WriteTrailer(rw)
}

// packRecords writes a compressed archive, padded, and returns its length.
func packRecords(w io.Writer, records []cpio.Record) (int64, error) {
	c := &counter{w: w}
	// lib/decompress_unzstd.c takes windows up to 128 MiB, but allocates them early
	// in the boot; 8 MiB is nearly as good. One goroutine makes the result the same
	// on every controller.
	enc, err := zstd.NewWriter(c, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	if err != nil {
		return 0, err
	}
	if err := writeArchive(enc, records); err != nil {
		enc.Close()
		return 0, err
	}
	if err := enc.Close(); err != nil {
		return 0, err
	}
	_, err = c.Write(make([]byte, (4-c.n%4)%4))
	return c.n, err
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// tree is the modules of one release in an installed system.
type tree struct {
	root fs.FS
	dir  string
	list []entry // of the modules that are wanted
}

// records returns the wanted modules, their indexes, and the folders above them.
func (t tree) records(ctx context.Context) ([]cpio.Record, Size, error) {
	var text [4][]byte
	for i, name := range []string{"modules.dep", "modules.alias", "modules.softdep", "modules.builtin"} {
		b, err := fs.ReadFile(t.root, path.Join(t.dir, name))
		if err != nil {
			return nil, Size{}, err
		}
		text[i] = b
	}
	x, err := parseIndex(text[0], text[1], text[2])
	if err != nil {
		return nil, Size{}, err
	}
	names := x.closure(func(file string) bool { return isIn(t.list, file) })
	if len(names) == 0 {
		return nil, Size{}, errkind.New(errkind.NotFound, "none of the modules that an install needs is there")
	}
	var dep, alias, soft bytes.Buffer
	x.writeDep(&dep, names)
	x.writeAlias(&alias, names)
	filterSoft(&soft, text[2], names)
	files := map[string][]byte{
		"modules.dep": dep.Bytes(), "modules.alias": alias.Bytes(), "modules.softdep": soft.Bytes(), "modules.builtin": text[3],
	}
	size := Size{Modules: len(names), Absent: absentModules(t.list, text[0], text[3])}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, Size{}, context.Cause(ctx)
		}
		b, err := t.module(x.files[name])
		if err != nil {
			return nil, Size{}, err
		}
		files[plainKo(x.files[name])] = b
		size.Plain += int64(len(b))
	}
	return t.layout(files), size, nil
}

// layout sorts the files and puts every folder before what lies in it.
func (t tree) layout(files map[string][]byte) []cpio.Record {
	kind := map[string][]byte{} // nil for a folder
	for name, b := range files {
		full := path.Join(t.dir, name)
		kind[full] = b[:len(b):len(b)]
		if b == nil {
			kind[full] = []byte{} // an empty file
		}
		for d := path.Dir(full); d != "."; d = path.Dir(d) {
			kind[d] = nil
		}
	}
	var names []string
	for name := range kind {
		names = append(names, name)
	}
	slices.Sort(names)
	records := make([]cpio.Record, 0, len(names))
	for _, name := range names {
		if b := kind[name]; b != nil {
			records = append(records, cpio.StaticRecord(b, cpio.Info{Name: name, Mode: cpio.S_IFREG | 0o644}))
		} else {
			records = append(records, cpio.Directory(name, 0o755))
		}
	}
	return records
}

// module reads one module and decompresses it by its suffix.
func (t tree) module(file string) ([]byte, error) {
	f, err := t.root.Open(path.Join(t.dir, file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	switch path.Ext(file) {
	case ".ko":
	case ".xz":
		r, err = xz.NewReader(f)
	case ".zst":
		var dec *zstd.Decoder
		if dec, err = zstd.NewReader(f, zstd.WithDecoderConcurrency(1)); err == nil {
			defer dec.Close()
			r = dec
		}
	default:
		err = errkind.New(errkind.Unsupported, "compressed in an unknown way")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxModule+1))
	if err == nil && len(b) > maxModule {
		err = errkind.New(errkind.Invalid, "more than %d MiB", maxModule>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}
