package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// fill sets v and everything in it to values, some of them zero.
func fill(v reflect.Value, r *rand.Rand, depth int) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(2e9), r.Int64N(1e9)).UTC()))
		return
	}
	if r.IntN(4) == 0 && depth > 1 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		words := []string{"main", "a<b>&c", `say "x"\y`, "naïve ☕", "\x01\x7f\n", "bad \xff", "\u2028", "java.util.HashMap$Node.get(Object)"}
		v.SetString(words[r.IntN(len(words))])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64N(1<<31) - 1<<30)
	case reflect.Uint64:
		v.SetUint(r.Uint64())
	case reflect.Float64:
		v.SetFloat([]float64{0.001, 12.5, 3e22, 1e-9, 48}[r.IntN(5)])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), r, depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 8))
		for i := range v.Len() {
			fill(v.Index(i), r, depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), r, depth+1)
		}
	default:
		panic("a kind of field that the test does not fill: " + v.Kind().String())
	}
}

// WriteJSON writes the same as encoding/json, whatever fields there are.
func TestWriteJSON(t *testing.T) {
	for seed := range uint64(300) {
		var d Dump
		fill(reflect.ValueOf(&d).Elem(), rand.New(rand.NewPCG(seed, 1)), 0)
		for _, indent := range []bool{false, true} {
			var got, want bytes.Buffer
			if err := d.WriteJSON(&got, indent); err != nil {
				t.Fatal(err)
			}
			e := json.NewEncoder(&want)
			e.SetEscapeHTML(false)
			if indent {
				e.SetIndent("", "  ")
			}
			if err := e.Encode(&d); err != nil {
				t.Fatal(err)
			}
			printed := bytes.ReplaceAll(want.Bytes(), []byte("\x7f"), []byte(`\u007f`))
			want.Reset()
			want.Write(printed)
			if !bytes.Equal(got.Bytes(), want.Bytes()) {
				at := 0
				for at < min(got.Len(), want.Len()) && got.Bytes()[at] == want.Bytes()[at] {
					at++
				}
				from := max(0, at-100)
				t.Fatalf("seed %d, indent %v, byte %d:\n%s\nencoding/json has\n%s", seed, indent, at,
					got.Bytes()[from:min(got.Len(), at+100)], want.Bytes()[from:min(want.Len(), at+100)])
			}
		}
	}
}

// full accepts some bytes and then fails.
type full struct{ left int }

var errFull = errors.New("no room")

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWriteJSONTellsOfErrors(t *testing.T) {
	d := Dump{Processes: []Process{{Threads: make([]Thread, 5000)}}}
	for _, room := range []int{0, flushAt + flushAt/2} {
		if err := d.WriteJSON(&full{room}, true); !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
}
