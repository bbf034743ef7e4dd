// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/keys"
)

// keysSuffix ends the name of the file with the encrypted keys beside a copy of the
// state.
const keysSuffix = ".keys.age"

// keyFlags say how the keys in a backup are encrypted or decrypted. Nothing secret is an
// argument or an environment variable: others on the computer can read these.
type keyFlags struct {
	recipients     []string // public
	passphraseFile string
	passphrase     bool   // asked for
	identityFile   string // of restore
}

func (f *keyFlags) addBackup(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.recipients, "recipient", nil, "add the keys, encrypted to this age `RECIPIENT` (age1...)")
	f.addPassphrase(c, "add the keys, encrypted")
}

func (f *keyFlags) addRestore(c *cobra.Command) {
	c.Flags().StringVar(&f.identityFile, "identity-file", "", "decrypt the keys with the age identity in this `FILE`")
	f.addPassphrase(c, "decrypt the keys")
}

func (f *keyFlags) addPassphrase(c *cobra.Command, what string) {
	c.Flags().StringVar(&f.passphraseFile, "passphrase-file", "", what+" with the first line of this `FILE`")
	c.Flags().BoolVar(&f.passphrase, "passphrase", false, what+" with a passphrase that is asked for on the terminal")
	c.MarkFlagsMutuallyExclusive("passphrase", "passphrase-file")
}

// given reports whether the keys are part of it.
func (f keyFlags) given() bool {
	return len(f.recipients) > 0 || f.passphraseFile != "" || f.passphrase || f.identityFile != ""
}

// secret is the passphrase, from its file or from the terminal.
func (f keyFlags) secret(a *app, twice bool) (string, error) {
	if f.passphraseFile != "" {
		file, err := openRegular(f.passphraseFile)
		if err != nil {
			return "", err
		}
		defer file.Close()
		b, err := io.ReadAll(io.LimitReader(file, 4096))
		line, _, _ := strings.Cut(string(b), "\n")
		if line = strings.TrimRight(line, "\r"); err == nil && line == "" {
			err = errkind.New(errkind.Refused, "%s has no passphrase in its first line", f.passphraseFile)
		}
		return line, err
	}
	first, err := a.askSecret("Passphrase: ")
	if err != nil || !twice {
		return first, err
	}
	again, err := a.askSecret("The same again: ")
	if err == nil && again != first {
		err = errkind.New(errkind.Refused, "the two passphrases differ; nothing was done")
	}
	return first, err
}

// askSecret reads a line of the terminal without showing it.
func (a *app) askSecret(prompt string) (string, error) {
	in, ok := a.in.(*os.File)
	if !ok || !isTerminal(a.in) {
		return "", errkind.New(errkind.Refused, "a passphrase is asked for, and standard input is not a terminal").Do("Give --passphrase-file FILE.")
	}
	fmt.Fprint(a.err, prompt)
	b, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(a.err)
	if err == nil && len(b) == 0 {
		err = errkind.New(errkind.Refused, "the passphrase is empty; nothing was done")
	}
	return string(b), err
}

// backupKeys writes the keys of the site beside a copy of its state. It returns the
// name of the file.
func (a *app) backupKeys(f keyFlags, copied string) (string, error) {
	kept, err := keys.Collect(filepath.Join(a.stateDir(), keys.Folder))
	if err != nil {
		return "", fmt.Errorf("the keys are not in the backup: %w", err)
	}
	var to []age.Recipient
	for _, word := range f.recipients {
		r, err := age.ParseX25519Recipient(word)
		if err != nil {
			return "", exit{exitUsage, fmt.Errorf("--recipient %s: %w", word, err)}
		}
		to = append(to, r)
	}
	if f.passphrase || f.passphraseFile != "" {
		if len(to) > 0 {
			return "", exit{exitUsage, errors.New("--recipient and a passphrase are two ways: give one")}
		}
		word, err := f.secret(a, true)
		if err != nil {
			return "", err
		}
		r, err := age.NewScryptRecipient(word)
		if err != nil {
			return "", err
		}
		to = append(to, r)
	}
	path := copied + keysSuffix
	return path, replaceWith(path, func(w io.Writer) error { return kept.Encrypt(w, to...) })
}

// readKeys decrypts the keys of a backup.
func (a *app) readKeys(f keyFlags, path string) (kept keys.Bundle, err error) {
	file, err := openRegular(path)
	if err != nil {
		return kept, err
	}
	defer file.Close()
	var by []age.Identity
	if f.identityFile != "" {
		of, err := openRegular(f.identityFile)
		if err != nil {
			return kept, err
		}
		defer of.Close()
		if by, err = age.ParseIdentities(of); err != nil {
			return kept, errkind.New(errkind.Refused, "%s: %w", f.identityFile, err).Do("Name the file that age-keygen made.")
		}
	} else {
		word, err := f.secret(a, false)
		if err != nil {
			return kept, err
		}
		id, err := age.NewScryptIdentity(word)
		if err != nil {
			return kept, err
		}
		by = append(by, id)
	}
	return keys.Decrypt(file, path, by...)
}

// restoreKeys puts keys into the state folder, mode 0600. Those that they replace are
// kept beside them. Where none were decrypted it says so of the file that has them.
func (a *app) restoreKeys(kept keys.Bundle, from string) error {
	if kept.Keys == nil {
		if _, err := os.Stat(from); err == nil {
			a.sayf("The keys in %s are not put back: --identity-file or --passphrase-file does it.", from)
		}
		return nil
	}
	dir := filepath.Join(a.stateDir(), "keys")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range kept.Names() {
		if err := a.restoreKey(filepath.Join(dir, name), kept.Keys[name]); err != nil {
			return err
		}
	}
	return nil
}

// restoreKey puts one key file back.
func (a *app) restoreKey(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err == nil {
		err = os.Rename(path, path+".replaced-"+a.stamp())
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = replaceAs(path, 0o600, func(w io.Writer) error { _, err := w.Write(content); return err })
	}
	if err != nil {
		return err
	}
	a.sayf("%s is put back.", path)
	return nil
}

func (a *app) stateKeysCommand() *cobra.Command {
	var create, approve bool
	var certificate, recovery string
	c := &cobra.Command{
		Use:   "keys",
		Short: "Compare the controller's keys with the state",
		Long: `List the controller's keys by their fingerprints, and whether they are those
that the nodes of the state trust. A key that is missing, or another one, is
refused by every plan and apply: state restore puts it back from a backup.

--new makes the keys that are missing, and takes those that are there as the
ones of the state. It is for a site before its first apply, and for lost keys:
  boot.key       nodes in the middle of an installation have to be booted again;
                 plans that were saved before lose their seal
  manifest.pem   images have to be built again
  ssh_ed25519    installed nodes refuse this controller: reinstall them, or add
                 the new public key to root's authorized_keys by hand
  tls.key        nodes in the middle of an installation have to be booted again
  modules.pem    nodes with Secure Boot refuse the modules of their drivers until
                 the new certificate is in their firmware

--certificate prints the certificate of modules.pem, which signs the kernel modules
of nodes with Secure Boot, for the firmware's setup (db) or for mokutil(1): der, or
pem. It is public.

--recovery prints the recovery keys of the encrypted volumes of a node, by the UUID
of each LUKS2 volume: whoever has one reads its volume. Those of volumes that were
erased since are among them, for disks that were taken out.

What a new key breaks is not fixed by this command.`,
		Example: "  ironrail state keys\n  ironrail state keys --certificate der > modules.cer\n  ironrail state keys --recovery r01-u03",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if certificate != "" {
				return a.printCertificate(certificate)
			}
			if recovery != "" {
				return a.printRecovery(recovery)
			}
			if create {
				return a.newKeys(c.Context(), approve)
			}
			return a.listKeys(c.Context())
		},
	}
	c.Flags().BoolVar(&create, "new", false, "make the keys that are missing, and take those that are there")
	c.Flags().StringVar(&certificate, "certificate", "", "print the certificate that kernel modules are signed with: `der` or pem")
	c.Flags().StringVar(&recovery, "recovery", "", "print the recovery keys of the encrypted volumes of this `NODE`")
	c.MarkFlagsMutuallyExclusive("new", "certificate", "recovery")
	c.Flags().BoolVar(&approve, "auto-approve", false, "do not ask")
	return c
}

// listedKey is a key as `state keys --json` prints it.
type listedKey struct {
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Recorded    string `json:"recorded,omitempty"`
	State       string `json:"standing"` // missing, not recorded, as recorded, another one
}

// judge sets the state of a key.
func (k *listedKey) judge(missing bool) {
	switch {
	case missing:
		k.State = "missing"
	case k.Recorded == "":
		k.State = "not recorded"
	case k.Fingerprint != "" && k.Fingerprint != k.Recorded:
		k.State = "another one than " + k.Recorded
	default:
		k.State = "as recorded"
	}
}

func (a *app) listKeys(ctx context.Context) error {
	dir := filepath.Join(a.stateDir(), "keys")
	missing, err := keys.ListMissing(dir)
	if err != nil {
		return err
	}
	var have map[string]string
	if len(missing) == 0 {
		k, err := keys.Load(dir)
		if err != nil {
			return err
		}
		have = k.Fingerprints()
	}
	var id keys.Identity
	if _, err := os.Stat(a.statePath()); err == nil {
		s, done, err := a.readFile(ctx)
		if err != nil {
			return err
		}
		defer done()
		if id, _, err = state.Get[keys.Identity](ctx, s, keys.IdentityKey); err != nil {
			return err
		}
	}
	list := []listedKey{}
	var out page
	for _, name := range keys.ListAllFiles() {
		k := listedKey{Name: name, Fingerprint: have[name], Recorded: id.Keys[name]}
		if name == keys.ModulesFile && k.Fingerprint == "" && k.Recorded == "" {
			continue // the site needs none
		}
		k.judge(slices.Contains(missing, name) || k.Fingerprint == "" && len(missing) == 0)
		list = append(list, k)
		out.linef("%-14s %-51s %s", name, textOr(k.Fingerprint, "-"), k.State)
	}
	if a.json {
		return a.printJSON(list)
	}
	out.to(a.out)
	return nil
}

// printCertificate writes the certificate that the firmware of nodes has to trust.
func (a *app) printCertificate(form string) error {
	dir := filepath.Join(a.stateDir(), "keys")
	if form != "der" && form != "pem" {
		return exit{exitUsage, fmt.Errorf("--certificate %s: it is der or pem", form)}
	}
	if err := keys.CheckModes(dir); err != nil {
		return err
	}
	k, err := modsign.Load(filepath.Join(dir, keys.ModulesFile))
	switch {
	case errkind.Of(err) == errkind.NotFound:
		return errkind.New(errkind.NotFound, "the site has no key for kernel modules").
			Do("`ironrail image build` makes it, for a site whose files have nodes with secure_boot = true and a driver with modules of its own.")
	case err != nil:
		return err
	case a.json:
		return a.printJSON(map[string]string{"name": k.Name(), "sha256": k.Fingerprint(), "pem": string(k.PEM())})
	case form == "pem":
		_, err = a.out.Write(k.PEM())
	case isTerminal(a.out):
		return errkind.New(errkind.Refused, "the certificate in DER is no text").Do("Send it to a file: ironrail state keys --certificate der > modules.cer")
	default:
		_, err = a.out.Write(k.DER())
	}
	return err
}

// shownRecovery is a recovery key as `state keys --recovery --json` prints it.
type shownRecovery struct {
	Volume string `json:"volume"` // label
	UUID   string `json:"uuid"`
	Key    string `json:"key"`
}

// printRecovery writes the recovery keys of a node.
func (a *app) printRecovery(node string) error {
	dir := filepath.Join(a.stateDir(), "keys")
	if err := keys.CheckModes(dir); err != nil {
		return err
	}
	all, unread := keys.RecoveryIn(dir).List()
	var list []shownRecovery
	var out page
	for _, k := range all {
		if k.Node == node {
			list = append(list, shownRecovery{k.Volume, k.UUID, k.Text})
			out.linef("%-16s %s  %s", k.Volume, k.UUID, k.Text)
		}
	}
	if len(list) == 0 && unread == nil {
		return errkind.New(errkind.NotFound, "there is no recovery key of a volume of %q", node).Do("They are made by the step that encrypts the volumes of a node; `ironrail state restore` puts them back from a backup with keys.")
	}
	if a.json && len(list) > 0 {
		return errors.Join(a.printJSON(list), unread)
	}
	out.to(a.out)
	return unread
}

func (a *app) newKeys(ctx context.Context, approve bool) error {
	inv, err := a.names()
	if err != nil {
		return err
	}
	dir := filepath.Join(a.stateDir(), "keys")
	missing, err := keys.ListMissing(dir)
	if err != nil {
		return err
	}
	o, err := a.ownAlone(ctx, "state keys")
	if err != nil {
		return err
	}
	defer o.giveBack()
	if err := keys.CheckSite(ctx, o.store, inv.Site.Name); err != nil {
		return err
	}
	a.sayf("Made anew: %s. What that breaks is said by `ironrail state keys --help`.", textOr(strings.Join(missing, ", "), "none; those that are there are taken"))
	if !approve {
		if err := a.promptFor("yes", "Read what that breaks, then add --auto-approve."); err != nil {
			return err
		}
	}
	k, err := keys.Renew(ctx, o.store, o.fence, dir, inv.Site.Name)
	if err != nil {
		return err
	}
	have := k.Fingerprints()
	if a.json {
		return a.printJSON(have)
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		a.sayf("%-14s %s", name, have[name])
	}
	return nil
}
