// SPDX-License-Identifier: Apache-2.0

package nvlink

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Files and names of IMEX (NVIDIA IMEX service guide).
const (
	nodesFile   = "/etc/nvidia-imex/nodes_config.cfg"
	configFile  = "/etc/nvidia-imex/config.cfg"
	imexService = "nvidia-imex"
	commands    = "IMEX_CMD_ENABLED=1" // so that nvidia-imex-ctl is answered
)

// hasIMEX reports whether a fabric has IMEX.
func hasIMEX(f *inventory.Fabric) bool { return f.True("imex") }

// nodesConfig is nodes_config.cfg: the addresses of a domain's nodes, one a line, in
// one order on all of them; the service refuses to start where they differ.
func nodesConfig(members []*inventory.Node, domain string) []byte {
	var list []netip.Addr
	for _, n := range members {
		if n.Domain == domain && n.Address.IsValid() {
			list = append(list, n.Address)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	var b bytes.Buffer
	for _, a := range list {
		fmt.Fprintln(&b, a)
	}
	return b.Bytes()
}

// withCommands is a config.cfg in which commands are answered, and else as it was.
func withCommands(config []byte) []byte {
	key, _, _ := strings.Cut(commands, "=")
	var b bytes.Buffer
	done := false
	for line := range strings.Lines(string(config)) {
		if strings.HasPrefix(strings.TrimSpace(line), key+"=") {
			if !done {
				b.WriteString(commands + "\n")
			}
			done = true
			continue
		}
		b.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	if !done {
		b.WriteString(commands + "\n")
	}
	return b.Bytes()
}

// file reads a file of a node; nil where there is none.
func (k *NVLink) file(ctx context.Context, node, name string) ([]byte, error) {
	out, err := k.nodes.Run(ctx, node, onnode.Command{Argv: []string{"cat", name}})
	if err != nil || out.Exit != 0 {
		return nil, err
	}
	return out.Stdout, nil
}

// files are IMEX's of a node that are not as they should be.
func (k *NVLink) files(ctx context.Context, f *inventory.Fabric, n *inventory.Node) (map[string][]byte, error) {
	differ := map[string][]byte{}
	for name, want := range map[string]func([]byte) []byte{nodesFile: func([]byte) []byte { return k.listing(f).configs[n.Domain] }, configFile: withCommands} {
		have, err := k.file(ctx, n.Name, name)
		if err != nil {
			return nil, fmt.Errorf("node %s: %s: %w", n.Name, name, err)
		}
		if content := want(have); !bytes.Equal(have, content) {
			differ[name] = content
		}
	}
	return differ, nil
}

// differsIMEX says what of IMEX is not as it should be; "" for nothing.
func (k *NVLink) differsIMEX(ctx context.Context, f *inventory.Fabric, n *inventory.Node) (string, error) {
	differ, err := k.files(ctx, f, n)
	if err != nil {
		return "", err
	}
	for name := range differ {
		return name + " has other lines", nil
	}
	out, err := k.nodes.Run(ctx, n.Name, onnode.Command{Argv: []string{"systemctl", "is-active", imexService}})
	if err != nil {
		return "", fmt.Errorf("node %s: %w", n.Name, err)
	}
	if state := strings.TrimSpace(string(out.Stdout)); state != "active" {
		return imexService + " is " + state, nil
	}
	return "", nil
}

// setIMEX writes the files and starts the service, which reads them at its start
// only.
func (k *NVLink) setIMEX(ctx context.Context, f *inventory.Fabric, n *inventory.Node) error {
	differ, err := k.files(ctx, f, n)
	if err != nil {
		return err
	}
	for name, content := range differ {
		if err := onnode.Write(ctx, k.nodes, n.Name, name, 0o644, content); err != nil {
			return err
		}
	}
	verb := "start"
	if len(differ) > 0 {
		verb = "restart"
	}
	for _, v := range []string{"enable", verb} {
		if err := onnode.Exec(ctx, k.nodes, n.Name, "systemctl", v, imexService); err != nil {
			return errkind.Begun(errkind.New(errkind.Mismatch, "%w", err).Do("Look at /var/log/nvidia-imex.log on the node; nvidia-imex must be of the driver's version."))
		}
	}
	return errkind.Begun(k.verifyNodesFile(ctx, f, n))
}

// verifyNodesFile looks whether the service's start left its files alone: a prolog of jobs, or
// a drop-in that one left, writes the list of a job there (NVIDIA IMEX guide, "per
// job"), and a node with another list is no part of the domain.
func (k *NVLink) verifyNodesFile(ctx context.Context, f *inventory.Fabric, n *inventory.Node) error {
	have, err := k.file(ctx, n.Name, nodesFile)
	if err != nil {
		return fmt.Errorf("node %s: %s: %w", n.Name, nodesFile, err)
	}
	want := k.listing(f).configs[n.Domain]
	if bytes.Equal(have, want) {
		return nil
	}
	return errkind.New(errkind.Mismatch, "node %s: %s is not that of the others of domain %s any more once %s has started: %s", n.Name, nodesFile, n.Domain, imexService, describeDifference(have, want)).
		Do("Look at what writes it on the node, such as a prolog of jobs or a drop-in of the service: systemctl cat " + imexService + ". Take that away, then apply again.")
}

// describeDifference says how a list differs from the one that it should be, by few lines.
func describeDifference(have, want []byte) string {
	in, of := strings.Fields(string(have)), strings.Fields(string(want))
	less := slices.DeleteFunc(slices.Clone(of), func(l string) bool { return slices.Contains(in, l) })
	more := slices.DeleteFunc(slices.Clone(in), func(l string) bool { return slices.Contains(of, l) })
	switch {
	case len(less)+len(more) == 0:
		return "the same addresses in another order or form"
	case len(more) == 0:
		return "it lacks " + diag.Few(less, len(less))
	case len(less) == 0:
		return "it has " + diag.Few(more, len(more)) + " besides"
	}
	return fmt.Sprintf("it lacks %s, and has %s", diag.Few(less, len(less)), diag.Few(more, len(more)))
}

// imexNode is a node in what nvidia-imex-ctl -N -j prints.
type imexNode struct {
	Status      string              `json:"status"` // READY when it answers
	Host        string              `json:"host"`
	Version     string              `json:"version"`     // of its driver
	Connections map[string]imexLink `json:"connections"` // to each node, by number; none in old versions
}

// imexLink is how a node sees another one.
type imexLink struct {
	Host   string `json:"host"`
	Status string `json:"status"` // CONNECTED, VERSION_MISMATCH and others
}

// parseIMEX reads nvidia-imex-ctl -N -j: the status of the domain (UP, DEGRADED and
// others), and of each node by its number.
func parseIMEX(out []byte) (status string, nodes map[string]imexNode, err error) {
	var answer struct {
		Status string              `json:"status"`
		Nodes  map[string]imexNode `json:"nodes"`
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.Status == "" {
		return "", nil, errkind.New(errkind.Invalid, "nvidia-imex-ctl -N -j does not report the state of the domain: %v", err)
	}
	nodes = map[string]imexNode{}
	for _, n := range answer.Nodes {
		nodes[n.Host] = n
	}
	return answer.Status, nodes, nil
}
