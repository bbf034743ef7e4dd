// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/resident"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/web/guard"
	"github.com/ironrail/ironrail/web/server"
)

// defaultPage is where the page is unless it is said.
const defaultPage = "127.0.0.1:8470"

// serveFlags are the options of one `ironrail serve`.
type serveFlags struct {
	server.Listen
	boot  string
	drift time.Duration
	page  bool // nothing but the page
	// standby: until another controller does not own the state any more nothing but the page.
	standby bool
}

// How often is looked for drift: as a rule, and at most.
const (
	usualDrift = 24 * time.Hour
	leastDrift = 10 * time.Second
)

// check refuses choices that there are not.
func (f *serveFlags) check(c *cobra.Command) error {
	switch {
	case !slices.Contains([]resident.Boot{resident.BootAuto, resident.BootYes, resident.BootNever}, resident.Boot(f.boot)):
		return fmt.Errorf("--boot %q is not auto, yes or never", f.boot)
	case f.page && (c.Flags().Changed("boot") || c.Flags().Changed("drift")):
		return errors.New("--boot and --drift are for a serve that owns the site, and --page owns nothing")
	case f.page && f.standby:
		return errors.New("--standby is for a serve that owns the site, and --page owns nothing")
	case f.drift != 0 && f.drift < leastDrift:
		return fmt.Errorf("--drift %v: it is 0, or at least %v", f.drift, leastDrift)
	}
	return nil
}

const serveHelp = `Own the site until Ctrl-C. While serve runs, apply, rebuild, test and all other
commands work through it: they plan, show and ask, and serve does what was approved,
which goes on when a terminal is closed. One run is done at a time. Nothing is
begun that nobody approved; after a crash ` + "`ironrail apply`" + ` goes on, as ever.

Nodes that boot are answered at any time: one that is installed is sent to its disk,
and so is one that waits for work. status and the page say what a node that asked
was given, and what to do. --boot auto, the default, opens these services (DHCP,
TFTP, HTTP, agent API) where this machine has the controller's address, and a plan
of the site was applied from here before; --boot yes opens them from the start, or
is an error; --boot never leaves them to runs.

Each --drift, a day as a rule, nodes are compared with how they were accepted, as by
` + "`ironrail drift`" + `: never while a run or another command works on the site, whose
beginning breaks it off. What has changed stands below the node and in the events;
nothing is changed by it.

With --standby, on a further controller of a site whose state is in etcd, serve
shows the page until no other controller owns the site, and owns it then.

The web page shows where every node stands, racks in elevation, why a node is not
up, findings as work orders, cables as found, the plan, the report, events; the same
as JSON below /api/v1. --page serves it alone and owns nothing; on what
` + "`rehearse --keep`" + ` left serve never does more. apply --ui serves the same page for as
long as it runs.

On loopback everybody who can reach the page may read. On other addresses it speaks
TLS, with --cert and --key or a certificate of its own, and asks for a login: with
the link that is printed, which is good once, or with the token that lies in
.ironrail/web.token. ` + "`serve link`" + ` prints another link. Names by which browsers know
this machine are given with --host; requests for other names are refused.

All that the page changes is hold and release of nodes, and that needs a login on
loopback too. --json prints the addresses as one object.

A first Ctrl-C lets the running steps of a run end, a second stops them; SIGTERM
stops them at once. Under systemd serve says when it is ready, and that it lives.`

func (a *app) serveCommand() *cobra.Command {
	f := serveFlags{Listen: server.Listen{Address: defaultPage}}
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Own the site: nodes that boot, runs, the web page",
		Long:    serveHelp,
		Example: "  ironrail serve\n  ironrail serve --listen 192.0.2.10:8470 --host head.example\n  ironrail serve --page\n  ironrail serve link",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(c); err != nil {
				return wrongUsage(c, err)
			}
			return a.serve(c.Context(), f)
		},
	}
	addListen(c, &f.Listen, "")
	c.Flags().StringVar(&f.Address, "listen", f.Address, "`ADDRESS:PORT` of the page; port 0 takes a free one")
	c.Flags().StringVar(&f.boot, "boot", string(resident.BootAuto), "`WHEN` nodes that boot are answered while no run is active: auto, yes or never")
	c.Flags().DurationVar(&f.drift, "drift", usualDrift, "look for drift each `TIME` while nothing is done; 0 never does")
	c.Flags().BoolVar(&f.standby, "standby", false, "wait until no other controller owns the state in etcd, and own it then")
	c.Flags().BoolVar(&f.page, "page", false, "serve the page alone, and own nothing")
	link, person := server.Listen{Address: defaultPage}, ""
	sub := &cobra.Command{
		Use:   "link",
		Short: "Print a link that logs in once",
		Long: `Print a link that logs a browser in to the page of a running serve or apply --ui.
It is good once, for a quarter of an hour. --listen, --host and --cert are those of
that command.`,
		Example: "  ironrail serve link --listen 192.0.2.10:8470",
		Args:    asUsage(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return a.serveLink(link, person) },
	}
	sub.Flags().StringVar(&link.Address, "listen", link.Address, "`ADDRESS:PORT` that the page listens on")
	sub.Flags().StringArrayVar(&link.Hosts, "host", nil, "`NAME` by which the browser knows this machine")
	sub.Flags().StringVar(&link.Certificate, "cert", "", "`FILE` that serve was given: the page speaks TLS on loopback, too")
	sub.Flags().StringVar(&person, "for", "", "`NAME` of the person that the login page proposes")
	c.AddCommand(sub)
	return c
}

// addListen defines the flags of who may reach the page, or metrics; their names begin with prefix.
func addListen(c *cobra.Command, l *server.Listen, prefix string) {
	c.Flags().StringArrayVar(&l.Hosts, prefix+"host", nil, "`NAME` of this machine, with or without a port, that browsers may ask for; may be given again")
	c.Flags().StringVar(&l.Certificate, prefix+"cert", "", "`FILE` with the certificate of its TLS, as PEM")
	c.Flags().StringVar(&l.Key, prefix+"key", "", "`FILE` with its key")
}

// checkCertificate refuses one of two files alone.
func checkCertificate(l server.Listen) error {
	if (l.Certificate == "") != (l.Key == "") {
		return exit{exitUsage, errors.New("a certificate (--cert) and its key (--key) are given together")}
	}
	return nil
}

// serve owns the site, or serves its page alone, until it is stopped.
func (a *app) serve(ctx context.Context, f serveFlags) error {
	_, kept, err := rehearsal.ReadKept(a.stateDir())
	if err != nil {
		return err
	}
	switch {
	case f.standby && kept:
		return errkind.New(errkind.Refused, "what a rehearsal left has no other controller").Do("Leave --standby out.")
	case f.standby:
		return a.standBy(ctx, f)
	case !f.page && !kept:
		return a.stay(ctx, f, a.ownToStay)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := a.openPage(f.Listen)
	if err != nil {
		return err
	}
	if err := a.sayPage(s); err != nil {
		return err
	}
	return s.Serve(ctx)
}

// sayPage prints where the page is.
func (a *app) sayPage(s *server.Server) error {
	if a.json {
		return a.printJSON(struct {
			URL         string `json:"url"`
			Link        string `json:"link,omitempty"`
			Fingerprint string `json:"certificate_sha256,omitempty"`
		}{s.URL(), s.Link(a.now()), s.Fingerprint()})
	}
	fmt.Fprintln(a.out, s.URL())
	a.sayLogin(s)
	return nil
}

// openPage opens the page of the site. One that cannot be read is an error at once, and not
// a page of errors.
func (a *app) openPage(l server.Listen) (*server.Server, error) {
	if err := checkCertificate(l); err != nil {
		return nil, err
	}
	if _, err := a.names(); err != nil {
		return nil, err
	}
	o := server.Options{Dir: a.dir, State: a.stateDir(), Version: thisVersion(), Now: a.now, Listen: l, Load: a.quietNames,
		Open: func(inv *inventory.Inventory) (*provision.Site, error) {
			return a.openSite(inv, provision.Options{Look: true})
		}}
	_, kept, err := rehearsal.ReadKept(a.stateDir())
	if err != nil {
		return nil, err
	}
	if !kept {
		o.Change = a.marker("serve")
	}
	return server.Open(o)
}

// showPage serves the page beside a command until end is called; s is nil where none is wanted.
func (a *app) showPage(ctx context.Context, l *server.Listen) (s *server.Server, end func(), err error) {
	if l == nil || l.Address == "" {
		return nil, func() {}, nil
	}
	at := *l
	if who, owned, err := control.FindOwner(a.stateDir()); err == nil && owned && who.Resident && at.Address == defaultPage {
		at.Address = "127.0.0.1:0" // serve has that port, as a rule
	}
	if s, err = a.openPage(at); err != nil {
		return nil, nil, err
	}
	a.page = s
	a.sayf("The web page is %s until this command ends; `ironrail serve` shows it afterwards.", s.URL())
	a.sayLogin(s)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(ctx); err != nil {
			a.sayf("warning: %v", err)
		}
	})
	return s, func() { cancel(); wg.Wait() }, nil
}

// quietNames loads the site's files as names does, without saying what is wrong with them: the
// page says it. Beside an error it returns what could be understood.
func (a *app) quietNames() (*inventory.Inventory, error) {
	inv, diags, _ := a.loadInventory()
	if !inventory.Complete(diags) {
		return inv, errkind.New(errkind.Invalid, "%w", hasErrors(diags)).Do("`ironrail check` shows them.")
	}
	return inv, nil
}

// sayLogin says how to log in.
func (a *app) sayLogin(s *server.Server) {
	if link := s.Link(a.now()); link != "" {
		a.sayf("To log in, once and within a quarter of an hour: %s", link)
	}
	if print := s.Fingerprint(); print != "" {
		a.sayf("SHA-256 of the certificate: %s", print)
	}
}

// serveLink prints a link that logs in once.
func (a *app) serveLink(l server.Listen, person string) error {
	token, err := guard.ReadToken(a.stateDir(), false)
	if err != nil {
		return errkind.New(errkind.NotFound, "%w", err).Do("`ironrail serve` makes it.")
	}
	page, err := server.URLOf(l)
	if err != nil {
		return err
	}
	link := page + "login?" + guard.MakeLink(token, a.now())
	if person != "" {
		link += "&for=" + url.QueryEscape(person)
	}
	fmt.Fprintln(a.out, link)
	return nil
}
