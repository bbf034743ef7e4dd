// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/controllers"
	"github.com/ironrail/ironrail/provision/keys"
)

// invitationMost is how many bytes of an encrypted file are read: a recovery key takes some 600.
const invitationMost = 128 << 20

func (a *app) controllerCommand() *cobra.Command {
	return groupCommands(&cobra.Command{
		Use:   "controller",
		Short: "Give the site's keys to further controllers",
		Long: `Give the keys of a site whose state is in etcd to further controllers, encrypted.
The new one shows its public key, a member encrypts the site's keys to it, and
the new one decrypts them. The file between them may go any way. Public keys,
fingerprints and who has which keys are in the state; keys never are.`,
		Example: "  ironrail controller key                                  # on the new one\n" +
			"  ironrail controller invite head2 --to age1... --out FILE  # on a member\n  ironrail controller join FILE                            # on the new one",
	}, a.controllerKeyCommand(), a.controllerInviteCommand(), a.controllerJoinCommand(), a.controllerListCommand())
}

func (a *app) controllerKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "Print the public key of this controller",
		Long: `Print the public key of this controller, for controller invite on a member. The
first time the key is made, and that is said; the private half is in
.ironrail/controller.key, with mode 0600, and leaves the machine in no backup. A
file that is damaged is refused, and no other key made.`,
		Example: "  ironrail controller key",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			k, made, err := controllers.MakeOwn(a.stateDir(), a.now())
			if err != nil {
				return err
			}
			if made {
				a.sayf("The key of this controller is made anew, in %s.", a.stateDir())
			}
			sum := controllers.Fingerprint(k.Public)
			if a.json {
				return a.printJSON(map[string]any{"public": k.Public, "fingerprint": sum, "made": made})
			}
			a.sayf("Its fingerprint, for comparing: %s", sum)
			var out page
			out.linef("%s", k.Public)
			out.to(a.out)
			return nil
		},
	}
}

// sharedSite are the site's files where its state is one that several controllers share.
func (a *app) sharedSite() (*inventory.Inventory, error) {
	inv, err := a.names()
	if err != nil {
		return nil, err
	}
	if c, err := a.etcd(); err != nil || c == nil {
		if err == nil {
			err = errkind.New(errkind.Unsupported, "the state of this site is a file of this controller, which no other shares").Do("See docs/controllers.md for several controllers; `ironrail state backup --recipient` keeps the keys of one.")
		}
		return nil, err
	}
	return inv, nil
}

func (a *app) controllerInviteCommand() *cobra.Command {
	var v controllers.Invitation
	var to string
	var approve bool
	c := &cobra.Command{
		Use:   "invite NAME --to KEY --out FILE",
		Short: "Encrypt the site's keys to another controller",
		Long: `Encrypt the keys of the site, recovery keys of volumes among them, to the key that
controller key prints on another controller, and record it as NAME. Compare the
fingerprint with what is shown there: who has the key's private half can do to the
nodes whatever this controller can. The file is for controller join there; with
--out - it goes to standard output.

The same command again makes a new file with the keys of now, such as when the site
has got another one since; files made before are not accepted any more.`,
		Example: "  ironrail controller invite head2 --to age1... --out head2.age",
		Args:    asUsage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			v.Name = args[0]
			return a.invite(c.Context(), v, to, approve)
		},
	}
	c.Flags().StringVar(&v.To, "to", "", "public `KEY` of the other controller (age1...)")
	c.Flags().StringVar(&to, "out", "", "write the encrypted keys to this `FILE`; -: to standard output")
	c.Flags().BoolVar(&approve, "auto-approve", false, "do not ask")
	_ = c.MarkFlagRequired("to")
	_ = c.MarkFlagRequired("out")
	return c
}

func (a *app) invite(ctx context.Context, v controllers.Invitation, to string, approve bool) error {
	if err := v.Check(); err != nil {
		return err
	}
	inv, err := a.sharedSite()
	if err != nil {
		return err
	}
	a.sayf("Controller %s gets the keys of site %s. The fingerprint of its key: %s", v.Name, inv.Site.Name, controllers.Fingerprint(v.To))
	if !approve {
		if err := a.promptFor("yes", "Compare the fingerprint with what `ironrail controller key` says there, then add --auto-approve."); err != nil {
			return err
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	v.Site, v.Folder, v.By, v.At = inv.Site.Name, a.stateDir(), operatorName()+" on "+host, a.now()
	o, err := a.own(ctx, "controller invite")
	if err != nil {
		return err
	}
	m, file, err := controllers.Invite(ctx, o.store, o.fence, v)
	o.giveBack()
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { _, err := w.Write(file); return err }
	if to == "-" {
		return write(a.out)
	}
	if err := replaceAs(to, 0o600, write); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(m)
	}
	a.sayf("%s has the keys, for controller %s alone. There: ironrail controller join FILE", to, m.Name)
	return nil
}

func (a *app) controllerJoinCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "join FILE",
		Short: "Decrypt the site's keys, for this controller",
		Long: `Decrypt the file that controller invite made for this controller, and put the
keys of the site into .ironrail/keys, with mode 0600. They are compared with the
fingerprints in etcd before. Files that are not the last one recorded for this
controller are refused, and so is a controller that has other keys. FILE - is
standard input.`,
		Example: "  ironrail controller join head2.age",
		Args:    asUsage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return a.join(c.Context(), args[0])
		},
	}
}

func (a *app) join(ctx context.Context, path string) error {
	inv, err := a.sharedSite()
	if err != nil {
		return err
	}
	in := a.in
	if path != "-" {
		file, err := openRegular(path)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	file, err := io.ReadAll(io.LimitReader(in, invitationMost))
	if err != nil {
		return err
	}
	r, done, err := a.openReader()
	if err != nil {
		return err
	}
	opened, err := controllers.Open(ctx, r, a.stateDir(), inv.Site.Name, file)
	done()
	if err != nil {
		return err
	}
	defer opened.Discard()
	held, err := a.lockState("controller join")
	if err != nil {
		return err
	}
	defer held.Release()
	added, err := opened.Install()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Name  string   `json:"name"`
			Added []string `json:"added"`
		}{opened.Member.Name, append([]string{}, added...)})
	}
	if len(added) == 0 {
		a.sayf("This controller, %s, has these keys already.", opened.Member.Name)
		return nil
	}
	a.sayf("This controller is %s, and has the keys of site %s: %s. Remove %s.", opened.Member.Name, inv.Site.Name, strings.Join(added, ", "), path)
	return nil
}

// listedController is a controller as `controller list --json` prints it.
type listedController struct {
	controllers.Member
	Fingerprint string `json:"fingerprint"`    // of its public key
	Current     bool   `json:"current"`        // it was given all keys of now
	This        bool   `json:"this,omitempty"` // it is this one
}

func (a *app) controllerListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the controllers that the site's keys were encrypted to",
		Long: `List the controllers that the keys of the site were encrypted to, whether these are
the keys of now, and who did it. A controller that made the keys, or got them in
another way, is not among them. Recovery keys of volumes are not compared.`,
		Example: "  ironrail controller list",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.listControllers(c.Context())
		},
	}
}

func (a *app) listControllers(ctx context.Context) error {
	own, err := controllers.LoadOwn(a.stateDir())
	if err != nil && errkind.Of(err) != errkind.NotFound {
		return err
	}
	r, done, err := a.openReader()
	if err != nil {
		return err
	}
	defer done()
	all, err := controllers.List(ctx, r)
	if err != nil {
		return err
	}
	id, _, err := state.Get[keys.Identity](ctx, r, keys.IdentityKey)
	if err != nil {
		return err
	}
	list := []listedController{}
	var out page
	for _, m := range all {
		l := listedController{m, controllers.Fingerprint(m.Public), maps.Equal(m.Keys, id.Keys), m.Public == own.Public}
		list = append(list, l)
		text := "keys of now"
		if !l.Current {
			text = "other keys than those of now: invite it again"
		}
		if l.This {
			text += ", this controller"
		}
		out.linef("%-16s %s  %s, by %s, %s", m.Name, l.Fingerprint, m.At.Local().Format(time.DateTime), m.By, text)
	}
	if a.json {
		return a.printJSON(list)
	}
	if len(list) == 0 {
		a.sayf("The keys of the site were encrypted to no other controller.")
	}
	out.to(a.out)
	return nil
}
