// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"strings"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/provision/install"
)

// factKind is the kind of the objects that hold facts.
var factKind = state.FactKey(fact.Key{}).Kind

// OfItsMoment reports whether an object of the state says something that holds only
// when it is written, so that a copy which is put back does not bring it back. A
// boot attempt is leave to interrupt its node; the node may have been accepted since
// the copy, and have jobs. Without it the node is as unknown: one that runs is
// offered for adoption, and its power is not touched.
func OfItsMoment(k state.Key) bool {
	return k.Kind == factKind && strings.HasSuffix(k.Name, "#"+string(install.AttemptFact))
}
