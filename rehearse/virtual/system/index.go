// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore ST1005 these are the words of the programs that are simulated

package system

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/images/repo/repodata"
)

// release is what matters of an InRelease file.
type release struct {
	files map[string]listed // by name
}

type listed struct {
	sum  string // SHA-256, hex
	size int64
}

// parseRelease reads a signed Release file. The signature must be there; it is
// not checked here, as it is on a real node.
func parseRelease(b []byte) (release, error) {
	text := string(b)
	const begin, middle, end = "-----BEGIN PGP SIGNED MESSAGE-----", "-----BEGIN PGP SIGNATURE-----", "-----END PGP SIGNATURE-----"
	body, signature, signed := strings.Cut(text, middle)
	if !strings.HasPrefix(text, begin) || !signed || !strings.Contains(signature, end) {
		return release{}, errors.New("Clearsigned file isn't valid, got 'NOSPLIT' (does the network require authentication?)")
	}
	r := release{files: map[string]listed{}}
	in := false
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, " ") {
			in = strings.HasPrefix(line, "SHA256:")
			continue
		}
		f := strings.Fields(line)
		if !in || len(f) != 3 {
			continue
		}
		if size, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			r.files[f[2]] = listed{strings.ToLower(f[0]), size}
		}
	}
	return r, nil
}

// index is the packages of a repository.
type index map[string]available

// available is one package of a repository.
type available struct {
	version, file string
	size          int64
	depends       []string // names, the first of alternatives
	signer        string   // serial number of the key that signed the kernel modules in it; "": it has none
}

// maxIndex bounds an index, unpacked.
const maxIndex = 64 << 20

// parseIndex reads a Packages file.
func parseIndex(b []byte) index {
	out := index{}
	for stanza := range strings.SplitSeq(string(b), "\n\n") {
		f := fieldsOf(stanza)
		if f["Package"] == "" || f["Version"] == "" {
			continue
		}
		a := available{version: f["Version"], file: f["Filename"], signer: f["Ironrail-Signer"]}
		a.size, _ = strconv.ParseInt(f["Size"], 10, 64)
		for _, key := range []string{"Pre-Depends", "Depends"} {
			for d := range strings.SplitSeq(f[key], ",") {
				first, _, _ := strings.Cut(d, "|")
				name, _, _ := strings.Cut(strings.TrimSpace(first), " ")
				if name, _, _ = strings.Cut(name, ":"); name != "" {
					a.depends = append(a.depends, name)
				}
			}
		}
		out[f["Package"]] = a
	}
	return out
}

// indexes holds what was read of the repositories, once for all nodes. It is safe
// for concurrent use. Its zero value is useful.
type indexes struct {
	mu    sync.Mutex // guards what follows
	bySum map[string]index
}

// errHash is apt's word for a file that is not what was signed.
var errHash = errors.New("Hash Sum mismatch")

// checkSum compares a file with what an index of dnf says of it.
func checkSum(b []byte, want repodata.File) error {
	sum := sha256.Sum256(b)
	if hex.EncodeToString(sum[:]) != want.Sum || int64(len(b)) != want.Size {
		return errors.New("Downloading successful, but checksum doesn't match")
	}
	return nil
}

// read unpacks and reads an index that must have the listed digest.
func (x *indexes) read(name string, b []byte, want listed) (index, error) {
	sum := sha256.Sum256(b)
	key := hex.EncodeToString(sum[:])
	if key != want.sum || int64(len(b)) != want.size {
		return nil, errHash
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if i, ok := x.bySum[key]; ok {
		return i, nil
	}
	if strings.HasSuffix(name, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		if b, err = io.ReadAll(io.LimitReader(r, maxIndex)); err != nil {
			return nil, err
		}
	}
	if x.bySum == nil {
		x.bySum = map[string]index{}
	}
	x.bySum[key] = parseIndex(b)
	return x.bySum[key], nil
}

// of returns the index that was read under a digest.
func (x *indexes) of(sum string) (index, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i, ok := x.bySum[sum]
	return i, ok
}
