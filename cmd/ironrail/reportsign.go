// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"aead.dev/minisign"
	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

const (
	signatureSuffix = ".minisig"
	mostReport      = 1 << 30 // bytes of a file that is signed or verified
)

// reportKeyFlags name the key that signs.
type reportKeyFlags struct {
	keyFlags
	key string // file
}

func (f *reportKeyFlags) add(c *cobra.Command, what string) {
	c.Flags().StringVar(&f.key, "key", "", what+", a `FILE`")
	_ = c.MarkFlagRequired("key")
}

func (a *app) reportKeyCommand() *cobra.Command {
	var f reportKeyFlags
	plain := false
	c := &cobra.Command{
		Use:   "keygen",
		Short: "Make a key that signs reports",
		Long: `Make a key pair of minisign: the secret key, encrypted with a passphrase, and
beside it the public one, whose name ends in .pub. A key made by minisign -G does as
well. Files that exist are never replaced.`,
		Example: "  ironrail report keygen --key acceptance.key --passphrase",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if !plain && !f.given() {
				return wrongUsage(c, errors.New("give --passphrase, --passphrase-file or --no-passphrase"))
			}
			return a.makeReportKey(f)
		},
	}
	f.add(c, "the secret key to make")
	f.addPassphrase(c, "encrypt the key")
	c.Flags().BoolVar(&plain, "no-passphrase", false, "do not encrypt the key: whoever can read the file can sign")
	c.MarkFlagsMutuallyExclusive("no-passphrase", "passphrase")
	c.MarkFlagsMutuallyExclusive("no-passphrase", "passphrase-file")
	return c
}

func (a *app) makeReportKey(f reportKeyFlags) error {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	secret, err := private.MarshalText()
	if f.given() {
		var word string
		if word, err = f.secret(a, true); err == nil {
			secret, err = minisign.EncryptKey(word, private)
		}
	}
	if err != nil {
		return err
	}
	open, err := public.MarshalText()
	if err != nil {
		return err
	}
	if err := createFile(f.key, append(secret, '\n'), 0o600); err != nil {
		return err
	}
	if err := createFile(f.key+".pub", append(open, '\n'), 0o644); err != nil {
		return err
	}
	a.sayf("%s signs, %s.pub verifies: %s", f.key, f.key, public)
	return nil
}

// createFile writes a file that must not exist yet.
func createFile(name string, content []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return errkind.New(errkind.Refused, "%s exists already, and is kept", name).Do("Choose another name.")
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

func (a *app) reportSignCommand() *cobra.Command {
	var f reportKeyFlags
	c := &cobra.Command{
		Use:   "sign FILE...",
		Short: "Sign reports with a key of minisign",
		Long: `Sign files, such as the forms of a report, in the format of minisign: the
signature of FILE is FILE.minisig. Its trusted comment, which is signed too, says
site, run and time of a report in JSON, and the name of any other file. An older
signature of the same file is replaced. Anybody verifies it with "ironrail report
verify" or, without ironrail, with "minisign -V".

A report in JSON names the evidence of each figure by its SHA-256, and the end of
the chain of all raw outputs, so that its signature holds those as well.`,
		Example: "  ironrail report --json > acceptance.json\n  ironrail report --format html > acceptance.html\n  ironrail report sign --key acceptance.key --passphrase acceptance.json acceptance.html",
		Args:    asUsage(cobra.MinimumNArgs(1)),
		RunE:    func(_ *cobra.Command, args []string) error { return a.signReports(f, args) },
	}
	f.add(c, "the secret key")
	f.addPassphrase(c, "decrypt the key")
	return c
}

func (a *app) signReports(f reportKeyFlags, names []string) error {
	key, err := a.readReportKey(f)
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := readWhole(name)
		if err != nil {
			return err
		}
		signature := minisign.SignWithComments(key, content, describeSigned(name, content, a.now()), "signature of ironrail report sign")
		if err := replaceWith(name+signatureSuffix, func(w io.Writer) error { _, err := w.Write(signature); return err }); err != nil {
			return err
		}
		a.sayf("%s: signed in %s%s", name, name, signatureSuffix)
	}
	return nil
}

// readReportKey reads the secret key, encrypted or not.
func (a *app) readReportKey(f reportKeyFlags) (key minisign.PrivateKey, err error) {
	text, err := readWhole(f.key)
	if err != nil {
		return key, err
	}
	if !minisign.IsEncrypted(text) {
		if err := key.UnmarshalText(text); err != nil {
			return key, errkind.New(errkind.Invalid, "%s is no secret key of minisign: %w", f.key, err).Do("Make one with `ironrail report keygen`.")
		}
		return key, nil
	}
	if !f.given() {
		f.passphrase = true
	}
	word, err := f.secret(a, false)
	if err != nil {
		return key, err
	}
	if key, err = minisign.DecryptKey(word, text); err != nil {
		return key, errkind.New(errkind.Auth, "%s cannot be decrypted: the passphrase is wrong, or the file is damaged", f.key)
	}
	return key, nil
}

// readWhole reads a regular file.
func readWhole(name string) ([]byte, error) {
	f, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostReport+1))
	if err == nil && len(b) > mostReport {
		err = errkind.New(errkind.Refused, "%s is larger than 1 GiB", name)
	}
	return b, err
}

// describeSigned is what the trusted comment says of a file.
func describeSigned(name string, content []byte, now time.Time) string {
	at := now.UTC().Format(time.RFC3339)
	if in, err := report.Read(bytes.NewReader(content)); err == nil {
		words := []string{"site " + in.Site}
		if in.Run != "" {
			words = append(words, "run "+in.Run)
		}
		return oneLine(strings.Join(append(words, "report of "+in.At.UTC().Format(time.RFC3339), "signed "+at), ", "))
	}
	return oneLine(fmt.Sprintf("file %s, signed %s", name, at))
}

// oneLine leaves out what would end the comment.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, text)
}

func (a *app) reportVerifyCommand() *cobra.Command {
	key, evidence := "", ""
	c := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Verify signed reports, and their evidence",
		Long: `Verify the signature of each FILE, in FILE.minisig, with a public key of minisign,
and print the trusted comment. With --evidence also that all raw outputs that a
report in JSON names are there and as they were, each by its SHA-256, and that the
chain of all raw outputs holds up to the entry that the report names: else the
first line is said at which it breaks.`,
		Example: "  ironrail report verify --key acceptance.key.pub acceptance.json\n  ironrail report verify --key acceptance.key.pub --evidence .ironrail/evidence acceptance.json",
		Args:    asUsage(cobra.MinimumNArgs(1)),
		RunE:    func(_ *cobra.Command, args []string) error { return a.verifyReports(key, evidence, args) },
	}
	c.Flags().StringVar(&key, "key", "", "the public key, a `FILE` or its text (RW...)")
	_ = c.MarkFlagRequired("key")
	c.Flags().StringVar(&evidence, "evidence", "", "the `FOLDER` with the raw outputs")
	return c
}

func (a *app) verifyReports(keyName, evidence string, names []string) error {
	var key minisign.PublicKey
	text := []byte(keyName)
	if err := key.UnmarshalText(text); err != nil {
		if text, err = readWhole(keyName); err != nil {
			return err
		}
		if err := key.UnmarshalText(text); err != nil {
			return errkind.New(errkind.Invalid, "%s is no public key of minisign: %w", keyName, err)
		}
	}
	for _, name := range names {
		content, err := readWhole(name)
		if err != nil {
			return err
		}
		signed, err := readWhole(name + signatureSuffix)
		if err != nil {
			return err
		}
		var signature minisign.Signature
		if err := signature.UnmarshalText(signed); err != nil {
			return errkind.New(errkind.Invalid, "%s%s is no signature of minisign: %w", name, signatureSuffix, err)
		}
		if !minisign.Verify(key, content, signed) {
			why := "the file or its signature was changed"
			if signature.KeyID != key.ID() {
				why = "another key signed it"
			}
			return errkind.New(errkind.Corrupt, "%s: the signature is not right: %s", name, why).Do("Do not rely on this file; get it again from who signed it.")
		}
		a.sayf("%s: the signature is right: %s", name, signature.TrustedComment)
		if evidence != "" {
			if err := a.verifyEvidence(name, content, evidence); err != nil {
				return err
			}
		}
	}
	return nil
}

// references finds what a report names by its digest.
var references = lazyregexp.New(`sha256:[0-9a-f]{64}/`)

// verifyEvidence reads all raw outputs that a report names.
func (a *app) verifyEvidence(name string, content []byte, dir string) error {
	if !json.Valid(content) {
		return errkind.New(errkind.Refused, "%s is no report in JSON, and names no evidence", name)
	}
	var all []string
	for _, ref := range references.FindAll(content, -1) {
		all = append(all, string(ref))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	in, err := report.Read(bytes.NewReader(content))
	if err != nil || in.Chain == nil { // of an earlier version, or not a report of acceptance
		if err := evidence.VerifyNamed(dir, all); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		a.sayf("%s: %d raw outputs are there and as they were; the report names no chain of them", name, len(all))
		return nil
	}
	missing, err := evidence.Verify(dir, *in.Chain, all)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	more := ""
	if missing > 0 {
		more = fmt.Sprintf("; %d that the report does not name are not in the folder", missing)
	}
	a.sayf("%s: %d raw outputs are there and as they were, and the chain of all %d holds%s", name, len(all), in.Chain.Entries, more)
	return nil
}
