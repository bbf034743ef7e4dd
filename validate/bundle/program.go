// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/target"
)

// How long programs may take on the node, seconds; timeout(1) ends them there, also when the
// connection is gone. nvidia-bug-report.sh of eight GPUs takes one to two minutes, and hangs
// on some that fell off the bus.
const (
	gpuSeconds  = "150"
	portSeconds = "60"
)

// vendorPrograms are what the makers of GPUs ask for when one is returned: NVIDIA GPU Debug
// Guidelines, "Capturing logs"; AMD's script for ROCm, which not every installation has.
var vendorPrograms = map[string]string{"nvidia": "nvidia-bug-report.sh", "amd": "rocm_techsupport.sh"}

// ofGPUs runs the program of the GPUs' maker.
func (r *Run) ofGPUs(node, vendor, part string) job {
	program := vendorPrograms[vendor]
	if vendor != "nvidia" {
		return job{part: part, program: program, file: "rocm_techsupport.log", do: func(ctx context.Context) ([]byte, error) {
			return r.print(ctx, node, []string{program}, gpuSeconds)
		}}
	}
	return job{part: part, program: program, file: "nvidia-bug-report.log.gz", do: func(ctx context.Context) ([]byte, error) {
		return r.fetch(ctx, node, func(dir string) ([]string, []string) {
			file := dir + "/nvidia-bug-report.log"
			// The safe mode leaves out what may hang a node that is ill.
			return []string{program, "--safe-mode", "--output-file", file}, []string{file + ".gz", file}
		}, gpuSeconds)
	}}
}

// ofPort runs what the maker of a NIC asks for about a link: the state of the port and its
// module, and the amber file (NVIDIA UFM Validation Tool, "Collecting Amber File"). mstlink
// is the same program from mstflint.
func (r *Run) ofPort(n *inventory.Node, part string) (list []job) {
	device := r.deviceOf(n, part)
	if device == "" {
		return nil
	}
	list = append(list, job{part: part, program: "mlxlink of " + device, file: "mlxlink-" + device + ".txt", port: true, do: func(ctx context.Context) ([]byte, error) {
		return r.either(func(program string) ([]byte, error) {
			return r.print(ctx, n.Name, []string{program, "-d", device, "-m", "-e", "-c"}, portSeconds)
		})
	}})
	return append(list, job{part: part, program: "mlxlink --amber_collect of " + device, file: "amber-" + device + ".csv", do: func(ctx context.Context) ([]byte, error) {
		return r.either(func(program string) ([]byte, error) {
			return r.fetch(ctx, n.Name, func(dir string) ([]string, []string) {
				file := dir + "/amber.csv"
				return []string{program, "-d", device, "--amber_collect", file}, []string{file}
			}, portSeconds)
		})
	}})
}

// readModule reads what mlxlink prints of a module, with -m; nil where it says nothing of one.
func readModule(text []byte) *Module {
	said := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(value) != "N/A" {
			said[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	m := Module{Model: strings.TrimSpace(said["Vendor Name"] + " " + said["Vendor Part Number"]), Serial: said["Vendor Serial Number"], Firmware: said["FW Version"]}
	for _, x := range []struct{ words, field string }{{"receives ", "Rx Power Current [dBm]"}, {"sends ", "Tx Power Current [dBm]"}} {
		if v := said[x.field]; v != "" {
			m.Power = strings.TrimPrefix(m.Power+", "+x.words+v+" dBm", ", ")
		}
	}
	if m.Model == "" {
		return nil
	}
	return &m
}

// deviceOf is the RDMA device of the rail that a finding names; "" where it is not known.
func (r *Run) deviceOf(n *inventory.Node, part string) string {
	for _, f := range fabric.Of(n) {
		ports, _ := target.ReadFact(r, fabric.Ports(f.Name), subject.OfNode(n.Name))
		for _, p := range ports {
			names := []string{isolate.RailName("", p.Rail), isolate.RailName(f.Name, p.Rail)}
			if slices.ContainsFunc(names, func(name string) bool {
				return part == name || strings.HasPrefix(part, name+",") || strings.HasPrefix(part, name+" (")
			}) {
				return p.Device
			}
		}
	}
	return ""
}

// either tries a program by both of its names.
func (r *Run) either(do func(program string) ([]byte, error)) ([]byte, error) {
	content, err := do("mlxlink")
	if errkind.Of(err) == errkind.NotFound && err != nil {
		content, err = do("mstlink")
	}
	return content, err
}

// print runs a program and returns what it prints.
func (r *Run) print(ctx context.Context, node string, argv []string, seconds string) ([]byte, error) {
	var kept keep
	out, err := r.nodes.Run(ctx, node, onnode.Command{Argv: append([]string{"timeout", "-k", "5", seconds}, argv...), Stdout: &kept})
	if err != nil {
		return nil, err
	}
	if err := exitOf(argv[0], out, seconds); err != nil {
		return nil, err
	}
	return kept.content()
}

// fetch runs a program that writes a file into a folder of its own, and returns the first of
// some files that is there. Nothing remains on the node.
func (r *Run) fetch(ctx context.Context, node string, in func(dir string) (argv, files []string), seconds string) (content []byte, err error) {
	made, err := onnode.Do(ctx, r.nodes, node, "mktemp", "-d", "/tmp/ironrail-bundle.XXXXXX")
	if err != nil {
		return nil, err
	}
	dir := strings.TrimSpace(string(made))
	if !strings.HasPrefix(dir, "/tmp/ironrail-bundle.") {
		return nil, errkind.New(errkind.Internal, "mktemp made %q", dir)
	}
	defer func() {
		if rerr := onnode.Exec(context.WithoutCancel(ctx), r.nodes, node, "rm", "-rf", "--", dir); err == nil && rerr != nil {
			err = rerr
		}
	}()
	argv, files := in(dir)
	out, err := r.nodes.Run(ctx, node, onnode.Command{Argv: append([]string{"timeout", "-k", "5", seconds}, argv...), StatusOnly: true})
	if err != nil {
		return nil, err
	}
	if err := exitOf(argv[0], out, seconds); err != nil {
		return nil, err
	}
	for _, file := range files {
		var kept keep
		out, err := r.nodes.Run(ctx, node, onnode.Command{Argv: []string{"cat", "--", file}, Stdout: &kept})
		if err != nil {
			return nil, err
		}
		if out.Exit == 0 {
			return kept.content()
		}
	}
	return nil, errkind.New(errkind.NotFound, "%s made no file", argv[0])
}

// exitOf is the error of a program that did not end well. What it makes is kept where it
// made something: that a node is ill is why it was called.
func exitOf(program string, out onnode.Output, seconds string) error {
	switch out.Exit {
	case 126, 127: // of timeout(1): it cannot be run, or is not there
		return errkind.New(errkind.NotFound, "%s is not on the node", program)
	case 124, 137: // of timeout(1): it was ended
		return errkind.New(errkind.Timeout, "%s did not end within %s s", program, seconds)
	}
	return nil
}

// keep keeps what is written to it, up to the bound.
type keep struct {
	bytes.Buffer
	over bool
}

// Write never fails.
func (k *keep) Write(b []byte) (int, error) {
	if k.Len()+len(b) > mostBytes {
		k.over = true
	} else if !k.over {
		return k.Buffer.Write(b)
	}
	return len(b), nil
}

// content is what was written; an error when that was too much.
func (k *keep) content() ([]byte, error) {
	if k.over {
		return nil, errkind.New(errkind.Unsupported, "it is larger than %s", fmt.Sprintf("%d MiB", mostBytes>>20))
	}
	return k.Bytes(), nil
}
