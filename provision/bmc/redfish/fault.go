// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/ironrail/ironrail/internal/errkind"
)

// ErrCredential is in the error of a log-in with a wrong user name or password.
var ErrCredential = errors.New("user name or password is wrong")

// ErrLocked is in the error of a log-in to an account that the BMC has locked,
// mostly after failed log-ins. Trying again prolongs the lock on many BMCs.
var ErrLocked = errors.New("the account is locked")

// ErrCertificate is in the error about a certificate that is not trusted.
var ErrCertificate = errors.New("the bmc's certificate is not the trusted one")

// ErrBusy is in the error of a request that the BMC did not carry out because it
// is doing something else; the same request may succeed a little later.
var ErrBusy = errors.New("the bmc is busy")

// errSessions is in the error of a log-in that found no free session.
var errSessions = errors.New("session limit reached")

// Message is one message of a service (DSP0266, 8.7).
type Message struct {
	ID         string // its last part: "PropertyNotWritable" of "Base.1.8.PropertyNotWritable"
	Text       string
	Resolution string
}

// Fault is an answer with an error status.
type Fault struct {
	Status   int
	Path     string
	Messages []Message
}

// Error names the status and the first message that says something.
func (f *Fault) Error() string {
	text := fmt.Sprintf("%d %s", f.Status, http.StatusText(f.Status))
	for _, m := range f.Messages {
		if m.ID == "GeneralError" && len(f.Messages) > 1 {
			continue
		}
		switch {
		case m.Text != "" && m.ID != "":
			return fmt.Sprintf("%s: %s (%s)", text, m.Text, m.ID)
		case m.Text != "" || m.ID != "":
			return text + ": " + m.Text + m.ID
		}
	}
	return text
}

// Has reports whether the service sent one of these message ids.
func (f *Fault) Has(ids ...string) bool {
	return slices.ContainsFunc(f.Messages, func(m Message) bool { return slices.Contains(ids, m.ID) })
}

// says reports whether a word is in a message, whatever its case. Services put
// what matters into texts where the registries have no message for it.
func (f *Fault) says(words ...string) bool {
	return slices.ContainsFunc(f.Messages, func(m Message) bool {
		all := strings.ToLower(m.ID + " " + m.Text)
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(all, w) })
	})
}

// The message ids that decide something. Base is DMTF's registry.
var (
	// Not ready: nothing was done; the same request succeeds later. SYS518 and
	// SYS425 are Dell's, the two with "System" in them HPE's, the rest Base's.
	idsNotReady = []string{"SYS518", "SYS425", "InvalidOperationForSystemState", "UnableToModifyDuringSystemPOST",
		"ServiceTemporarilyUnavailable", "ServiceInUnknownState", "ServiceShuttingDown"}
	// Session limit: Base's names, and Dell's RAC0218.
	idsSessions = []string{"SessionLimitExceeded", "CreateLimitReachedForResource", "RAC0218"}
	// Busy: the state forbids it now. PSU501 and SYS012 are Dell's.
	idsBusy = []string{"ResourceInUse", "ActionParameterValueConflict", "ResourceInStandby", "OperationTimeout"}
	// Locked: there is no message of Base for it; these are vendors'.
	idsLocked = []string{"AccountLocked", "UserAccountLocked", "AccountIsLocked", "UserLocked", "LoginLocked"}
	// The service wants If-Match: AMI's, Base's.
	idsPrecondition = []string{"PreconditionHeaderMissing", "PreconditionFailed", "PreconditionRequired"}
	// The boot override is to be written to the settings resource: AMI's.
	idsFuture = []string{"OperationSupportedInFutureStateURI"}
)

// messages reads the messages of an answer: inside "error", or beside the
// properties as in answers of status 200. What cannot be read is left out.
func messages(body []byte) []Message {
	type info struct{ MessageId, Message, Resolution text } //nolint:revive // the names of the schema
	var doc struct {
		Error struct {
			Code     text
			Message  text
			Extended []info `json:"@Message.ExtendedInfo"`
		} `json:"error"`
		Extended []info `json:"@Message.ExtendedInfo"`
	}
	if err := json.Unmarshal(body, &doc); err != nil && !isTypeError(err) {
		return nil
	}
	var out []Message
	for _, m := range append(doc.Error.Extended, doc.Extended...) {
		if len(out) < maxMessages {
			out = append(out, Message{ID: lastPart(string(m.MessageId)), Text: OneLine(string(m.Message)), Resolution: OneLine(string(m.Resolution))})
		}
	}
	if len(out) == 0 && doc.Error.Code+doc.Error.Message != "" {
		out = append(out, Message{ID: lastPart(string(doc.Error.Code)), Text: OneLine(string(doc.Error.Message))})
	}
	return out
}

// maxMessages bounds what is kept of an answer; maxText one text of it, in bytes.
const (
	maxMessages = 16
	maxText     = 240
)

// lastPart returns the message's name without registry and version.
func lastPart(id string) string {
	return OneLine(id[strings.LastIndexByte(id, '.')+1:])
}

// OneLine cuts a text from outside to one line of sane length.
func OneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "..."
	}
	return s
}

// fault turns an answer with an error status into an error with a kind.
func (a answer) fault() error {
	f := &Fault{Status: a.status, Path: a.path, Messages: messages(a.body)}
	switch {
	case a.status == http.StatusUnauthorized:
		return errkind.New(errkind.Auth, "%w", f)
	case f.Has("PasswordChangeRequired"):
		return errkind.New(errkind.Auth, "the password of this account must be changed first: %w", f).
			Do("Change the BMC's factory password, and put the new one into the inventory's secrets.")
	case a.status == http.StatusForbidden || f.Has("InsufficientPrivilege"):
		return errkind.New(errkind.Refused, "privilege is not enough: %w", f).Do("Give the BMC user the role Operator or Administrator.")
	case a.status == http.StatusNotFound, a.status == http.StatusMethodNotAllowed, a.status == http.StatusNotImplemented,
		f.Has("ActionNotSupported", "LicenseRequired", "OemLicenseNotPassed"):
		return errkind.New(errkind.Unsupported, "%s: %w", a.path, f)
	case a.status == http.StatusConflict, f.Has(idsBusy...):
		return errkind.New(errkind.Refused, "%w: %w", ErrBusy, f).Do(actionBusy)
	case a.status == http.StatusTooManyRequests, a.status == http.StatusServiceUnavailable, f.Has(idsNotReady...):
		return errkind.New(errkind.Refused, "the bmc is not ready: %w", f).Do(actionBusy) // do has waited
	}
	e := errkind.New(errkind.Refused, "%w", f)
	if len(f.Messages) > 0 && f.Messages[0].Resolution != "" && !strings.EqualFold(f.Messages[0].Resolution, "None.") {
		e.Action = "The BMC advises: " + f.Messages[0].Resolution
	}
	return e
}

// actionBusy is the next action for a BMC that does something else for too long.
const actionBusy = "Try again in some minutes; reset the BMC if it stays so."

// asFault returns the Fault in an error.
func asFault(err error) (*Fault, bool) { return errors.AsType[*Fault](err) }

// isStatus reports whether err is an answer with one of these statuses.
func isStatus(err error, statuses ...int) bool {
	f, ok := errors.AsType[*Fault](err)
	return ok && slices.Contains(statuses, f.Status)
}
