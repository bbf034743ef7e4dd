// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/ironrail/ironrail/internal/errkind"
)

// errPacking is the error of an initrd whose packing is not read: lz4, lzo, bzip2, lzma.
var errPacking = errors.New("packed in a way that is not read")

// The most that an initrd may unpack to, and the longest name in it.
const (
	maxInitrd = 4 << 30
	maxName   = 4096
)

// initrdNames lists the files of an initrd: archives of cpio in the format newc, one
// behind another, of which the last may be packed
// (Documentation/driver-api/early-userspace/buffer-format.rst of Linux).
func initrdNames(r io.Reader) ([]string, error) {
	names, in, err := archives(bufio.NewReaderSize(r, 64<<10))
	if err != nil || in == nil {
		return names, err
	}
	plain, err := unpacked(in)
	if err != nil {
		return nil, err
	}
	if c, ok := plain.(io.Closer); ok {
		defer c.Close()
	}
	more, rest, err := archives(bufio.NewReaderSize(io.LimitReader(plain, maxInitrd), 64<<10))
	if err == nil && rest != nil {
		err = errPacking
	}
	return append(names, more...), err
}

// unpacked reads what is packed.
func unpacked(in *bufio.Reader) (io.Reader, error) {
	head, _ := in.Peek(len(magicXZ))
	switch {
	case bytes.HasPrefix(head, magicGzip):
		return gzip.NewReader(in)
	case bytes.HasPrefix(head, magicXZ):
		return xz.NewReader(in)
	case bytes.HasPrefix(head, magicZstd):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(1<<27))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, errPacking
}

// archives reads plain archives, as many as there are. rest is what comes then and is no
// such archive; nil: nothing does.
func archives(in *bufio.Reader) (names []string, rest *bufio.Reader, err error) {
	for {
		head, err := in.Peek(6)
		switch {
		case len(head) > 0 && head[0] == 0: // padding
			if _, err := in.Discard(1); err != nil {
				return names, nil, err
			}
			continue
		case len(head) == 0 && (errors.Is(err, io.EOF) || len(names) > 0): // or padding behind what was packed
			return names, nil, nil
		case len(head) == 0:
			return names, nil, errkind.New(errkind.Corrupt, "%w", err)
		case string(head) != "070701" && string(head) != "070702":
			return names, in, nil
		}
		if names, err = archive(in, names); err != nil {
			return names, nil, err
		}
	}
}

// archive reads one archive up to its trailer.
func archive(in *bufio.Reader, names []string) ([]string, error) {
	for {
		head := make([]byte, 110)
		if _, err := io.ReadFull(in, head); err != nil {
			return names, errkind.New(errkind.Corrupt, "it is cut off")
		}
		size, err1 := strconv.ParseUint(string(head[54:62]), 16, 32)
		length, err2 := strconv.ParseUint(string(head[94:102]), 16, 32)
		if err := errors.Join(err1, err2); err != nil || !bytes.HasPrefix(head, []byte("07070")) || length == 0 || length > maxName {
			return names, errkind.New(errkind.Corrupt, "its archive has a header that is none")
		}
		name := make([]byte, length+(-(length+110))&3)
		if _, err := io.ReadFull(in, name); err != nil {
			return names, errkind.New(errkind.Corrupt, "it is cut off")
		}
		text, _, _ := strings.Cut(string(name), "\x00")
		if text == "TRAILER!!!" {
			return names, nil
		}
		if _, err := io.CopyN(io.Discard, in, int64(size+(-size)&3)); err != nil {
			return names, errkind.New(errkind.Corrupt, "it is cut off in %s", fmt.Sprintf("%q", text))
		}
		names = append(names, strings.TrimPrefix(text, "./"))
	}
}
