// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision/addresses"
	"github.com/ironrail/ironrail/provision/services"
)

func (a *app) showCommand() *cobra.Command {
	return groupCommands(&cobra.Command{
		Use:     "show",
		Short:   "Show addresses, nodes and parts of the site, and saved plans",
		Long:    "Show what the site's files say, resolved, and the parts that were seen. Nothing\nis contacted and nothing is made.",
		Example: "  ironrail show addresses\n  ironrail show node r01-u09\n  ironrail show parts --bad",
	}, a.showAddressesCommand(), a.showNodeCommand(), a.showPartsCommand(), a.showPlanCommand())
}

// addressFlags are the options of one `ironrail show addresses`.
type addressFlags struct {
	format, network string
	out, ns         string // of zones
	serial          uint32
}

// addressFormats are the forms of the list.
var addressFormats = []string{"table", "csv", "hosts", "zone", "json"}

func (a *app) showAddressesCommand() *cobra.Command {
	var f addressFlags
	c := &cobra.Command{
		Use:   "addresses",
		Short: "List every address; as hosts file or DNS zones too",
		Long: `List every address of the site by network: of nodes, BMCs, PDUs, switches,
controllers and gateways, of the rails of fabrics, and what ironrail.lock has for
links and loopbacks.

--format hosts is for /etc/hosts. --format zone is the forward zone and the
reverse zones (in-addr.arpa, ip6.arpa, and RFC 2317 for less than a /24), one
after another, or with --out one file each. The serial number of a zone is a hash
of its records unless --serial is given: give it where there are secondaries,
for they take a larger number only.`,
		Example: "  ironrail show addresses\n  ironrail show addresses --format hosts --network boot\n  ironrail show addresses --format zone --out zones --serial 2026112101",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains(addressFormats, f.format) {
				return wrongUsage(c, fmt.Errorf("--format %q is none of %s", f.format, strings.Join(addressFormats, ", ")))
			}
			if f.out != "" && f.format != "zone" {
				return wrongUsage(c, errors.New("--out goes with --format zone"))
			}
			return a.showAddresses(f)
		},
	}
	c.Flags().StringVar(&f.format, "format", "table", "table, csv, hosts, zone or json")
	c.Flags().StringVar(&f.network, "network", "", "only this `NETWORK` or fabric")
	c.Flags().StringVar(&f.out, "out", "", "write each zone to a file of this `FOLDER`")
	c.Flags().StringVar(&f.ns, "ns", "", "`NAME` of the name server in zones (default the first controller)")
	c.Flags().Uint32Var(&f.serial, "serial", 0, "serial `NUMBER` of zones (default a hash of the records)")
	return c
}

func (a *app) showAddresses(f addressFlags) error {
	inv, err := a.inventory()
	if err != nil {
		return err
	}
	list := addresses.List(inv, roce.Addresses(inv))
	if f.network != "" {
		names := networkNames(inv)
		if !slices.Contains(names, f.network) {
			return errkind.New(errkind.NotFound, "%q is no network or fabric of this site.%s", f.network, diag.DidYouMean(f.network, names))
		}
		list = slices.DeleteFunc(list, func(e addresses.Entry) bool { return e.Network != f.network })
	}
	if f.format == "json" || a.json {
		return a.printJSON(append([]addresses.Entry{}, list...))
	}
	if f.format == "zone" {
		return a.showZones(inv, list, f)
	}
	w := bufio.NewWriter(a.out)
	switch f.format {
	case "csv":
		err = addressCSV(w, list)
	case "hosts":
		err = addresses.Hosts(w, list, inv.Site.Domain)
	default:
		err = addressTable(w, list)
	}
	return errors.Join(err, w.Flush())
}

// networkNames lists what --network takes.
func networkNames(inv *inventory.Inventory) (names []string) {
	for _, n := range inv.Networks {
		names = append(names, n.Name)
	}
	for _, f := range inv.Fabrics {
		if f.CIDR.IsValid() {
			names = append(names, f.Name)
		}
	}
	return names
}

func addressTable(w io.Writer, list []addresses.Entry) error {
	network, address, name := len("NETWORK"), len("ADDRESS"), len("NAME")
	for _, e := range list {
		network, address, name = max(network, len(e.Network)), max(address, len(e.Address.String())), max(name, len(e.Name))
	}
	_, err := fmt.Fprintf(w, "%-*s  %-*s  %-*s  %s\n", network, "NETWORK", address, "ADDRESS", name, "NAME", "OF")
	for _, e := range list {
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%-*s  %-*s  %-*s  %s\n", network, textOr(e.Network, "-"), address, e.Address, name, e.Name, strings.TrimSpace(string(e.Kind)+" "+e.Port))
	}
	return err
}

func addressCSV(w io.Writer, list []addresses.Entry) error {
	c := csv.NewWriter(w)
	err := c.Write([]string{"network", "address", "length", "name", "kind", "node", "port"})
	for _, e := range list {
		if err != nil {
			return err
		}
		err = c.Write([]string{e.Network, e.Address.Addr().String(), strconv.Itoa(e.Address.Bits()), e.Name, string(e.Kind), e.Node, e.Port})
	}
	c.Flush()
	return errors.Join(err, c.Error())
}

// showZones prints zones, or writes each to a file.
func (a *app) showZones(inv *inventory.Inventory, list []addresses.Entry, f addressFlags) error {
	if inv.Site.Domain == "" {
		return errkind.New(errkind.NotFound, "the site has no domain, which names in DNS end in").
			Do(`Give it one: site "NAME" { domain = "dc1.example" }.`)
	}
	if f.ns == "" {
		c, err := services.FindController(inv)
		if err != nil {
			return errkind.New(errkind.Invalid, "the name server of the zones is not given: %w", err).Do("Name one: --ns ns1.example.")
		}
		f.ns = c.Name
	}
	zones := addresses.Zones(inv, list, addresses.Options{Domain: inv.Site.Domain, NS: f.ns, Serial: f.serial})
	if f.out == "" {
		for _, z := range zones {
			if _, err := a.out.Write(z.Text); err != nil {
				return err
			}
		}
		return nil
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return err
	}
	for _, z := range zones {
		path := filepath.Join(f.out, "db."+strings.ReplaceAll(z.Name, "/", "-"))
		if err := os.WriteFile(path, z.Text, 0o644); err != nil {
			return err
		}
		a.sayf("%s: zone %s", path, z.Name)
	}
	return nil
}
