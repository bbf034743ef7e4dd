// SPDX-License-Identifier: Apache-2.0

package errkind

import (
	"errors"
	"fmt"
	"syscall"
)

// Reach is how an address could not be reached: what a person looks at first differs.
type Reach uint8

// The sorts of an Unreachable error.
const (
	Silent    Reach = iota // nothing came back
	Closed                 // a device has the address, and nothing listens on the port
	NoRoute                // nobody has the address, says this host or a router
	NoNetwork              // this host has no route to its network
)

// ReachOf tells the sort of an Unreachable error by what the operating system said.
func ReachOf(err error) Reach {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return Closed
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EHOSTDOWN):
		return NoRoute
	case errors.Is(err, syscall.ENETUNREACH):
		return NoNetwork
	}
	return Silent
}

// Action is what to do when what does not answer; service is what has to be enabled
// on it.
func (r Reach) Action(what, service string) string {
	switch r {
	case Closed:
		return fmt.Sprintf("A device has this address and refuses the connection: check that it is %s, that its port is right and %s is enabled on it; one that restarts needs some minutes.", what, service)
	case NoRoute:
		return fmt.Sprintf("Check that %s has power and its cable, that its address is right, and that its port is in the right VLAN; `ip neighbour` and `ip route get ADDRESS` on this controller say who was asked.", what)
	case NoNetwork:
		return fmt.Sprintf("Give this controller an address in the network of %s, or a route to it: `ip route get ADDRESS` says what is missing.", what)
	}
	return fmt.Sprintf("Check that %s has power and its cable, that its address and port are right, and that %s is enabled on it.", what, service)
}
