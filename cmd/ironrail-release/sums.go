// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile has the SHA-256 of every other file, as sha256sum checks them.
const sumsFile = "SHA256SUMS"

// sum writes the checksums, and signs them where a key is given.
func (r *release) sum(ctx context.Context) error {
	var b strings.Builder
	if err := each(r.out, func(path, name string) error {
		digest, size, err := digestOf(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", digest, name)
		fmt.Printf("%9.1f MB  %s\n", float64(size)/1e6, filepath.Join(r.out, name))
		return nil
	}); err != nil {
		return err
	}
	name := filepath.Join(r.out, sumsFile)
	if err := write(name, b.String()); err != nil {
		return err
	}
	if r.key == "" {
		fmt.Printf("%s: not signed, since no --key was given\n", name)
		return nil
	}
	return r.sign(ctx, name)
}

// sign has the program that was just made sign a file.
func (r *release) sign(ctx context.Context, name string) error {
	argv := []string{r.self(), "report", "sign", "--key", r.key}
	if r.passphrase != "" {
		argv = append(argv, "--passphrase-file", r.passphrase)
	}
	if _, err := command(ctx, nil, append(argv, name)...); err != nil {
		return err
	}
	fmt.Printf("%s: signed in %[1]s.minisig\n", name)
	return nil
}

func digestOf(path string) (digest [sha256.Size]byte, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return digest, 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	h.Sum(digest[:0])
	return digest, size, err
}
