// SPDX-License-Identifier: Apache-2.0

package unit

// String returns the quantity in its shortest exact unit.
func (q Quantity) String() string { return formatQuantity(q.Value, q.Dimension) }

// String returns for example "10.2kW".
func (w Watts) String() string { return formatQuantity(float64(w), Power) }

// String returns for example "415V".
func (v Volts) String() string { return formatQuantity(float64(v), Tension) }

// String returns for example "63A".
func (a Amps) String() string { return formatQuantity(float64(a), Current) }

// String returns for example "3m".
func (l Length) String() string { return formatQuantity(float64(l), Distance) }

// String returns for example "90kg".
func (m Mass) String() string { return formatQuantity(float64(m), Weight) }

// String returns for example "92%".
func (p Percent) String() string { return formatQuantity(float64(p), Share) }

// String returns for example "800GB" or "2TiB".
func (b Bytes) String() string { return formatQuantity(float64(b), Data) }

// String returns for example "400Gbps".
func (r BitRate) String() string { return formatQuantity(float64(r), LineRate) }

// String returns for example "2850GB/s".
func (r ByteRate) String() string { return formatQuantity(float64(r), Throughput) }

// MarshalText writes String.
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// MarshalText writes String.
func (w Watts) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// MarshalText writes String.
func (v Volts) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalText writes String.
func (a Amps) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// MarshalText writes String.
func (l Length) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// MarshalText writes String.
func (m Mass) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// MarshalText writes String.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// MarshalText writes String.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// MarshalText writes String.
func (r BitRate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// MarshalText writes String.
func (r ByteRate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (q *Quantity) UnmarshalText(t []byte) (err error) { *q, err = ParseAny(string(t)); return err }

// UnmarshalText reads what MarshalText writes.
func (w *Watts) UnmarshalText(t []byte) (err error) { *w, err = ParseWatts(string(t)); return err }

// UnmarshalText reads what MarshalText writes.
func (b *Bytes) UnmarshalText(t []byte) (err error) { *b, err = ParseBytes(string(t)); return err }

// UnmarshalText reads what MarshalText writes.
func (r *BitRate) UnmarshalText(t []byte) (err error) { *r, err = ParseBitRate(string(t)); return err }

// UnmarshalText reads what MarshalText writes.
func (r *ByteRate) UnmarshalText(t []byte) (err error) {
	*r, err = ParseByteRate(string(t))
	return err
}
