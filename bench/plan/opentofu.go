// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/internal/network"
)

// nobody is a network on which nobody answers.
type nobody struct{ network.Network }

// Dial refuses.
func (nobody) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("nobody answers")
}

// configurations measures OpenTofu on a configuration whose state is complete, and
// on one in which an input of every resource has changed.
func (b bench) configurations(ctx context.Context, dir string) (took []usage, err error) {
	for _, c := range []struct{ what, image string }{{"no change", "sha256:ab"}, {"one input changed", "sha256:cd"}} {
		at := filepath.Join(dir, "tofu-"+c.image[len("sha256:"):])
		if err := os.MkdirAll(at, 0o755); err != nil {
			return nil, err
		}
		if err := errors.Join(writeConfig(filepath.Join(at, "main.tf"), func(w *bufio.Writer) { writeConfiguration(w, b.resources, c.image) }),
			writeConfig(filepath.Join(at, "terraform.tfstate"), func(w *bufio.Writer) { writeFinished(w, b.resources) })); err != nil {
			return nil, err
		}
		if _, err := b.measure(ctx, b.tofu, "-chdir="+at, "init", "-input=false", "-no-color"); err != nil {
			return nil, err
		}
		u, err := b.measure(ctx, b.tofu, "-chdir="+at, "plan", "-input=false", "-no-color")
		if err != nil {
			return nil, err
		}
		showUsage("opentofu", b.resources, c.what, u)
		took = append(took, u)
	}
	return took, nil
}

// writeConfig writes a file.
func writeConfig(path string, to func(*bufio.Writer)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	to(w)
	return errors.Join(w.Flush(), f.Close())
}

// writeConfiguration writes one resource with as many instances as asked for: what
// OpenTofu has to plan one by one, and to parse only once.
func writeConfiguration(w *bufio.Writer, resources int, image string) {
	fmt.Fprintf(w, `resource "terraform_data" "step" {
  count = %d
  input = {
    node  = "n${count.index}"
    image = "%s"
    disk  = "os"
    mtu   = "9000"
  }
}
`, resources, image)
}

// writeFinished writes the state that an apply of the configuration leaves, in format 4.
func writeFinished(w *bufio.Writer, resources int) {
	fmt.Fprint(w, `{"version":4,"terraform_version":"1.10.6","serial":1,"lineage":"5d5c8a3a-0000-4000-8000-000000000000","outputs":{},"resources":[`+
		`{"mode":"managed","type":"terraform_data","name":"step","provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[`)
	for i := range resources {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		const object = `["object",{"disk":"string","image":"string","mtu":"string","node":"string"}]`
		value := fmt.Sprintf(`{"value":{"disk":"os","image":"sha256:ab","mtu":"9000","node":"n%d"},"type":%s}`, i, object)
		fmt.Fprintf(w, `{"index_key":%d,"schema_version":0,"attributes":{"id":"00000000-0000-4000-8000-%012d","input":%s,"output":%s,"triggers_replace":null},"sensitive_attributes":[]}`, i, i, value, value)
	}
	fmt.Fprint(w, "]}],\"check_results\":null}\n")
}
