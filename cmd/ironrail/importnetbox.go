// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/language"
	"github.com/ironrail/ironrail/provision/netbox"
)

// netboxFlags are those of import netbox.
type netboxFlags struct {
	url, token, ca, site, from, out, boot string
	nodes, switches, ports, switchPorts   []string
	write                                 bool
}

func (a *app) importNetboxCommand() *cobra.Command {
	var f netboxFlags
	c := &cobra.Command{
		Use:   "netbox",
		Short: "Compare the site with racks, devices and cables of NetBox",
		Long: `Read racks, devices and cables of NetBox by its REST API, or from files with its
answers (--from), and print as a diff how a file of the site would become. What
other files of the site declare is left to them: where NetBox differs, each place
is listed. --write writes the file; nothing is ever changed in NetBox.

Device roles say what is a node (--node SLUG=ROLE, a role of the site) and what a
switch (--switch SLUG, or SLUG=FABRIC). Cables are taken over between ports that
--port and --switch-port name by their interfaces: "ib{n}=rail/{n}" makes ib3 of a
node its port rail/3. They are followed over patch panels, and breakouts taken
apart by their profile; a note names what NetBox does not say enough of.

The token is never given itself: --token says where it lies, as in the site's
files (env:NAME, file:PATH). --json prints one object.`,
		Example: "  ironrail import netbox --url https://netbox.example --token env:NETBOX_TOKEN --site ams1 --node gpu-server=worker --switch leaf\n" +
			"  ironrail import netbox --from saved --node gpu-server=worker --switch leaf=compute --port 'ib{n}=rail/{n}' --switch-port 'Ethernet{n}={n}' --write",
		Args: asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.importNetbox(c, f) },
	}
	c.Flags().StringVar(&f.url, "url", "", "`URL` of NetBox, without /api")
	c.Flags().StringVar(&f.token, "token", "", "where the token of NetBox `LIES`: env:NAME or file:PATH")
	c.Flags().StringVar(&f.ca, "ca", "", "whom to trust: a `FILE` of certificates in PEM, or the pin sha256:HEX of the server's key; default: the system's authorities")
	c.Flags().StringVar(&f.site, "site", "", "`SLUG` of the site in NetBox")
	c.Flags().StringVar(&f.from, "from", "", "`FOLDER` with racks.json, devices.json, cables.json and what they need, instead of a URL")
	c.Flags().StringVar(&f.out, "out", "netbox.hcl", "the `FILE` that is compared and written, in the site's folder")
	c.Flags().StringVar(&f.boot, "boot-interface", "", "`NAME` of the interface that nodes boot from; its MAC becomes boot_mac")
	c.Flags().StringArrayVar(&f.nodes, "node", nil, "SLUG=ROLE: devices of this role are nodes of that role of the site")
	c.Flags().StringArrayVar(&f.switches, "switch", nil, "SLUG or SLUG=FABRIC: devices of this role are switches, of that fabric of the site")
	c.Flags().StringArrayVar(&f.ports, "port", nil, "INTERFACE=NIC/PORT of nodes; {n} stands for a number")
	c.Flags().StringArrayVar(&f.switchPorts, "switch-port", nil, "INTERFACE=PORT of switches; {n} stands for a number")
	c.Flags().BoolVar(&f.write, "write", false, "write the file")
	return c
}

// options reads what things of NetBox are in the site.
func (f netboxFlags) options() (o netbox.Options, err error) {
	if err := f.check(); err != nil {
		return o, err
	}
	if o.Nodes, o.Switches, err = f.roles(); err != nil {
		return o, err
	}
	if o.Ports, err = readTemplates("port", f.ports); err == nil {
		o.SwitchPorts, err = readTemplates("switch-port", f.switchPorts)
	}
	return o, err
}

// check refuses flags that do not go together.
func (f netboxFlags) check() error {
	switch {
	case (f.url == "") == (f.from == ""):
		return errors.New("give --url or --from, one of them")
	case f.from != "" && (f.token != "" || f.ca != "" || f.site != ""):
		return errors.New("--token, --ca and --site are for --url")
	case filepath.Ext(f.out) != ".hcl" || filepath.Base(f.out) != f.out:
		return fmt.Errorf("--out %q is no *.hcl file of the site's folder", f.out)
	}
	return nil
}

// roles reads which device roles are nodes and switches.
func (f netboxFlags) roles() (nodes, switches map[string]string, err error) {
	nodes, switches = map[string]string{}, map[string]string{}
	for _, w := range f.nodes {
		slug, role, _ := strings.Cut(w, "=")
		if slug == "" || !hclsyntax.ValidIdentifier(role) {
			return nil, nil, fmt.Errorf("--node %q is not SLUG=ROLE: %q is no name of a role", w, role)
		}
		nodes[slug] = role
	}
	for _, w := range f.switches {
		slug, fabric, given := strings.Cut(w, "=")
		if slug == "" || given && !hclsyntax.ValidIdentifier(fabric) {
			return nil, nil, fmt.Errorf("--switch %q is not SLUG or SLUG=FABRIC", w)
		}
		switches[slug] = fabric
	}
	return nodes, switches, nil
}

// readTemplates reads the values of a flag.
func readTemplates(flag string, words []string) (list []netbox.Template, err error) {
	for _, w := range words {
		t, err := netbox.ParseTemplate(w)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		list = append(list, t)
	}
	return list, nil
}

// netboxReport is what --json prints.
type netboxReport struct {
	File        string              `json:"file"`
	Racks       int                 `json:"racks"`
	Nodes       int                 `json:"nodes"`
	Switches    int                 `json:"switches"`
	Cables      int                 `json:"cables"`
	Problems    []string            `json:"problems"`
	Notes       []string            `json:"notes"` // cables to write by hand
	LeftOut     map[string]int      `json:"left_out"`
	Roles       map[string]int      `json:"roles"`
	Differences []netbox.Difference `json:"differences"` // with other files of the site
	Diff        string              `json:"diff"`        // unified; empty: the file is as NetBox
	Written     bool                `json:"written"`
}

func (a *app) importNetbox(c *cobra.Command, f netboxFlags) error {
	o, err := f.options()
	if err != nil {
		return wrongUsage(c, err)
	}
	export, err := a.readNetbox(c.Context(), f)
	if err != nil {
		return err
	}
	result := netbox.Convert(export, o)
	if len(o.Nodes)+len(o.Switches) == 0 {
		return errkind.New(errkind.Invalid, "which devices are nodes and switches is not said; those in racks have the roles %s", listCounts(result.Roles)).
			Do("Give --node SLUG=ROLE and --switch SLUG.")
	}
	inv, err := a.siteBeside(f.out)
	if err != nil {
		return err
	}
	site, differences := netbox.Compare(result.Site, inv, f.out)
	path := filepath.Join(a.dir, f.out)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	after := site.HCL()
	r := netboxReport{File: f.out, Racks: len(site.Racks), Cables: len(site.Cables), Problems: result.Problems, Notes: result.Notes, LeftOut: result.LeftOut, Roles: result.Roles, Differences: differences, Diff: string(diff.Diff(f.out, before, "NetBox", after))}
	for _, x := range site.Racks {
		r.Nodes, r.Switches = r.Nodes+len(x.Nodes), r.Switches+len(x.Switches)
	}
	if f.write && r.Diff != "" {
		if err = writeNetbox(path, after, r.Problems); err == nil {
			r.Written = true
		}
		return errors.Join(a.showNetbox(r), err)
	}
	return a.showNetbox(r)
}

// writeNetbox writes the file, unless something of NetBox would be missing in it.
func writeNetbox(path string, content []byte, problems []string) error {
	if len(problems) > 0 {
		return errkind.New(errkind.Refused, "nothing was written: %d things of NetBox cannot be taken over as they stand", len(problems)).Do("Correct them in NetBox, or write the file by hand.")
	}
	return durable.Write(path, content, 0o644)
}

// readNetbox reads from NetBox itself, or from files.
func (a *app) readNetbox(ctx context.Context, f netboxFlags) (netbox.Export, error) {
	if f.from != "" {
		return netbox.ReadFolder(f.from, f.boot)
	}
	s := netbox.Server{URL: f.url, Trust: f.ca, Site: f.site}
	if f.token != "" {
		ref, err := language.ParseSecret(f.token)
		if err != nil {
			return netbox.Export{}, exit{exitUsage, fmt.Errorf("--token: %w", err)}
		}
		if s.Token, err = (secret.Resolver{Dir: a.dir, Environ: a.environ}).Resolve(ref); err != nil {
			return netbox.Export{}, err
		}
	}
	if f.ca != "" && !strings.HasPrefix(f.ca, "sha256:") {
		b, err := os.ReadFile(f.ca)
		if err != nil {
			return netbox.Export{}, err
		}
		s.Trust = string(b)
	}
	return s.Read(ctx, f.boot)
}

// siteBeside loads the site whose file is compared; nil where the folder has no other
// files. Errors of the site are no reason to stop: it may be what the import repairs.
func (a *app) siteBeside(out string) (*inventory.Inventory, error) {
	files, err := filepath.Glob(filepath.Join(a.dir, "*.hcl"))
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(files, func(p string) bool { return filepath.Base(p) != out }) {
		return nil, nil
	}
	inv, diags, _ := a.loadInventory()
	if n := diags.Errors(); n > 0 {
		a.sayf("warning: the site's files have %d %s, which `ironrail check` shows; what they declare may be compared in part.", n, pluralOf(n, "error", "errors"))
	}
	return inv, nil
}

// listCounts lists names with their counts.
func listCounts(of map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		words = append(words, fmt.Sprintf("%s (%d)", name, of[name]))
	}
	if len(words) == 0 {
		return "of none"
	}
	return strings.Join(words, ", ")
}

// showNetbox prints the diff, and says the rest. Texts of NetBox are escaped.
func (a *app) showNetbox(r netboxReport) error {
	if a.json {
		return a.printJSON(r)
	}
	for line := range strings.Lines(r.Diff) {
		fmt.Fprintln(a.out, event.Escape(strings.TrimSuffix(line, "\n")))
	}
	for _, d := range r.Differences {
		a.sayf("%s:%d: %s", d.File, d.Line, event.Escape(d.Text))
	}
	for _, p := range r.Problems {
		a.sayf("error: %s", event.Escape(p))
	}
	for _, n := range r.Notes {
		a.sayf("note: %s.", event.Escape(n))
	}
	for _, why := range slices.Sorted(maps.Keys(r.LeftOut)) {
		a.sayf("left out: %d %s", r.LeftOut[why], why)
	}
	what := fmt.Sprintf("%d racks, %d nodes, %d switches, %d cables", r.Racks, r.Nodes, r.Switches, r.Cables)
	switch {
	case r.Written:
		a.sayf("%s is written: %s.", r.File, what)
	case r.Diff == "":
		a.sayf("%s is as NetBox has it: %s.", r.File, what)
	default:
		a.sayf("%s would have %s. --write writes it.", r.File, what)
	}
	if len(r.Differences) > 0 {
		a.sayf("%d differences with other files of the site are for you to decide.", len(r.Differences))
	}
	return nil
}
