package climeta

import "testing"

// TestReadable compares names that C# generates with what people would call them.
func TestReadable(t *testing.T) {
	for _, c := range []struct {
		namespace  string
		types      []string
		method     string
		args, more []string
		want       string
	}{
		{"Shop", []string{"Checkout", "<PayAsync>d__5"}, "MoveNext", nil, nil, "Shop.Checkout.PayAsync"},
		{"Shop", []string{"Checkout", "<Items>d__3`1"}, "MoveNext", []string{"int"}, nil, "Shop.Checkout.Items"},
		{"Shop", []string{"Checkout", "<Items>d__3"}, "System.IDisposable.Dispose", nil, nil, "Shop.Checkout.Items (System.IDisposable.Dispose)"},
		{"Shop", []string{"Checkout", "<>c"}, "<Pay>b__0_1", nil, nil, "Shop.Checkout.Pay (lambda 1)"},
		{"Shop", []string{"Checkout", "<>c__DisplayClass4_0"}, "<Pay>b__2", nil, nil, "Shop.Checkout.Pay (lambda 2)"},
		{"Shop", []string{"Checkout"}, "<Pay>g__Add|0_1", nil, nil, "Shop.Checkout.Pay (local function Add)"},
		{"Shop", []string{"Checkout", "<>c", "<<Pay>b__0_0>d"}, "MoveNext", nil, nil, "Shop.Checkout.Pay (lambda 0)"},
		{"", []string{"Program"}, "<Main>$", nil, nil, "Program.Main"},
		{"System.Collections.Generic", []string{"Dictionary`2", "Enumerator"}, "MoveNext", []string{"int", "string"}, nil, "System.Collections.Generic.Dictionary<int, string>.Enumerator.MoveNext"},
		{"System", []string{"Array"}, "Sort", nil, []string{"int"}, "System.Array.Sort<int>"},
		{"", []string{"A"}, ".ctor", nil, nil, "A..ctor"},
		{"", []string{"<F>F1234__Local"}, "M", nil, nil, "Local.M"},
	} {
		if got := Readable(Type{Namespace: c.namespace, Names: c.types}, c.method, c.args, c.more); got != c.want {
			t.Errorf("%v %s is %q, should be %q", c.types, c.method, got, c.want)
		}
	}
}

func FuzzReadable(f *testing.F) {
	f.Add("<<Pay>b__0_0>d", "<Pay>g__Add|0_1")
	f.Fuzz(func(t *testing.T, typ, method string) {
		Readable(Type{Namespace: "N", Names: []string{"A", typ}}, method, []string{"int"}, nil)
	})
}
