// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

// classify turns an error of go-ipmi into one of ours. It is the only place
// that looks into that library's errors; texts are never matched.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*errkind.Error](err); ok {
		return e
	}
	if status, ok := errors.AsType[*types.RmcpStatusError](err); ok {
		return classifyStatus(status)
	}
	if resp, ok := errors.AsType[*types.ResponseError](err); ok {
		return classifyCompletion(resp.CompletionCode(), err)
	}
	netErr, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, client.ErrRAKPAuthentication):
		return errkind.New(errkind.Auth, "%w", errCredential).Do(actionCredential)
	case errors.Is(ctx.Err(), context.Canceled), errors.Is(err, context.Canceled):
		return errkind.New(errkind.Interrupted, "interrupted: %w", context.Canceled)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH),
		errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN):
		return errkind.New(errkind.Unreachable, "%w", rootErrno(err)).Do(errkind.ReachOf(err).Action("the BMC", "IPMI over LAN"))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isNet && netErr.Timeout():
		return errkind.New(errkind.Timeout, "no answer in time")
	}
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		return errkind.New(errkind.Timeout, "no answer in time") // the library's own time-out has no type
	}
	return errkind.New(errkind.Internal, "unexpected answer: %w", err)
}

// errCredential is in every error that a refused log-in causes.
var errCredential = redfish.ErrCredential

// Next actions that several places name.
const (
	actionCredential = "Correct the BMC's user name or password in the inventory's secrets; " +
		"it is not tried again by itself, because BMCs lock accounts."
	actionLocked    = "Wait until the lock of the account expires, or unlock it on the BMC; find out first who logs in with a wrong password."
	actionPrivilege = "Give the BMC user at least the privilege OPERATOR on its LAN channel."
	actionCipher    = "Set cipher_suite = 3 for BMCs that do not know suite 17."
)

// rootErrno returns the errno inside err, so that the text says "connection
// refused" once and without local ports.
func rootErrno(err error) error {
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return no
	}
	return err
}

// classifyStatus maps RMCP+ status codes (IPMI 2.0, table 13-15), which answer
// the messages that open a session.
func classifyStatus(e *types.RmcpStatusError) error {
	switch e.StatusCode() {
	case types.RmcpStatusCodeUnauthorizedName, types.RmcpStatusCodeInvalidIntegrityCheckValue,
		types.RmcpStatusCodeInvalidNameLength:
		return errkind.New(errkind.Auth, "%w: %w", errCredential, e).Do(actionCredential)
	case types.RmcpStatusCodeInvalidRole, types.RmcpStatusCodeUnauthorizedRoleOfPriLevel:
		return errkind.New(errkind.Refused, "privilege is refused: %w", e).Do(actionPrivilege)
	case types.RmcpStatusCodeNoResToCreateSess, types.RmcpStatusCodeNoResToCreateSessAtRole:
		return errkind.New(errkind.Refused, "session limit reached: %w", e).
			Do("Close other sessions on the BMC or wait a minute until they expire.")
	case types.RmcpStatusCodeInvalidSessionID, types.RmcpStatusCodeInactiveSessionID:
		return errkind.New(errkind.Timeout, "session expired: %w", e)
	case types.RmcpStatusCodeInvalidAuthAlg, types.RmcpStatusCodeInvalidIntegrityAlg,
		types.RmcpStatusCodeInvalidConfidentAlg, types.RmcpStatusCodeNoMatchingAuthPayload,
		types.RmcpStatusCodeNoMatchingIntegrityPayload, types.RmcpStatusCodeNoCipherSuiteMatch:
		return errkind.New(errkind.Unsupported, "cipher suite is refused: %w", e).Do(actionCipher)
	}
	return errkind.New(errkind.Refused, "session is refused: %w", e)
}

// codeParameterUnsupported answers boot options that a BMC does not have
// (IPMI 2.0, 28.12 and 28.13).
const codeParameterUnsupported types.CompletionCode = 0x80

// classifyCompletion maps completion codes (IPMI 2.0, table 5-2).
func classifyCompletion(c types.CompletionCode, err error) error {
	switch c {
	case types.CodeOK: // go-ipmi's mark for an answer that it could not parse
		return errkind.New(errkind.Internal, "unexpected answer: %w", err)
	case types.CodeInvalidCommand, types.CodeInvalidCommandForLUN, types.CodeSubFnDisabled, codeParameterUnsupported:
		return errkind.New(errkind.Unsupported, "the bmc does not know the command (code %#02x): %w", uint8(c), c)
	case types.CodeInsufficientPrivilege:
		return errkind.New(errkind.Refused, "privilege is not enough (code %#02x): %w", uint8(c), c).Do(actionPrivilege)
	}
	return errkind.New(errkind.Refused, "code %#02x: %w", uint8(c), c)
}

// isLost reports whether err means that the session may be gone and a new one
// should be opened before anything else is asked.
func isLost(err error) bool {
	k := errkind.Of(err)
	return k == errkind.Timeout || k == errkind.Unreachable
}

// isCode reports whether the BMC answered with the completion code c.
func isCode(err error, c types.CompletionCode) bool {
	got, ok := errors.AsType[types.CompletionCode](err)
	return ok && got == c
}
