// SPDX-License-Identifier: Apache-2.0

package language

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"

	"github.com/ironrail/ironrail/inventory/diag"
)

// sourceFile is one parsed file of the language.
type sourceFile struct {
	name  string
	src   []byte
	body  hcl.Body
	diags diag.List
}

// readSources reads and parses every *.hcl and *.hcl.json of the folder, in the
// order of their names; sub-folders are not read. total counts what they take. The
// error is about the folder; what is wrong with a file is in diags.
func readSources(in folder, lim Limits, total *sizes, diags *diag.List) ([]*sourceFile, error) {
	entries, err := fs.ReadDir(in.fsys, in.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %s", causeOf(err))
	}
	var files []*sourceFile
	for _, e := range entries {
		name := e.Name()
		if !IsSource(e) {
			continue
		}
		src, err := ReadFile(in.fsys, path.Join(in.dir, name), lim.FileBytes)
		name = in.file(name)
		if err == nil {
			err = total.add(name, src, lim)
		}
		f := &sourceFile{name: name, src: src}
		if err != nil {
			check, summary := "language.file", "File cannot be read"
			if errors.Is(err, errPastTotal) {
				check, summary = "language.limit", "Files too large together"
			}
			f.diags.Add(check, hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}, summary, fmt.Sprintf("%s cannot be read: %s.", name, causeOf(err)))
			f.src = nil
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, errNoFiles
	}
	parseAll(files, lim)
	for _, f := range files {
		*diags = append(*diags, f.diags...)
	}
	return files, nil
}

// IsSource reports whether an entry of a folder is a file of the language.
func IsSource(e fs.DirEntry) bool {
	name := e.Name()
	return !e.IsDir() && !strings.HasPrefix(name, ".") && (strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json"))
}

// add counts one more file; the error is about what is too much.
func (s *sizes) add(name string, src []byte, lim Limits) error {
	if s.bytes += len(src); s.bytes > lim.TotalBytes {
		return fmt.Errorf("%w %d bytes", errPastTotal, lim.TotalBytes)
	}
	if s.tokens += countTokens(src, strings.HasSuffix(name, ".json")); s.tokens > lim.Tokens {
		return fmt.Errorf("%w %d words and signs; lists that long are put into a CSV file", errPastTotal, lim.Tokens)
	}
	return nil
}

var errPastTotal = errors.New("with it the files of the site are past the limit of")

var errNoFiles = errors.New("has no *.hcl file")

// parseAll parses the files side by side: parsing is most of the time that a
// site with literal nodes takes.
func parseAll(files []*sourceFile, lim Limits) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, f := range files {
		if f.src == nil {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			f.parse(lim)
			<-slots
		})
	}
	wg.Wait()
}

func (f *sourceFile) parse(lim Limits) {
	var file *hcl.File
	var found hcl.Diagnostics
	if strings.HasSuffix(f.name, ".json") {
		if !prescanJSON(f.name, f.src, lim, &f.diags) {
			return
		}
		file, found = json.Parse(f.src, f.name)
	} else {
		if !prescanSource(f.name, f.src, lim, &f.diags) {
			return
		}
		file, found = hclsyntax.ParseConfig(f.src, f.name, hcl.InitialPos)
	}
	f.diags.Import(found, "language.syntax")
	if file != nil {
		f.body = file.Body
	}
}

// ReadFile reads a regular file of at most limit bytes. What is no regular file is
// not opened: a pipe would wait for its writer forever.
func ReadFile(fsys fs.FS, name string, limit int) ([]byte, error) {
	if info, err := fs.Stat(fsys, name); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	src, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(src) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return src, nil
}

// causeOf returns the error without the operation and the path around it.
func causeOf(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
