// Json decodes and encodes documents with encoding/json, as many rounds as its argument says.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

type person struct {
	Name    string            `json:"name"`
	Age     int               `json:"age"`
	Tags    []string          `json:"tags"`
	Address map[string]string `json:"address"`
	Scores  []float64         `json:"scores"`
	Friends []person          `json:"friends,omitempty"`
}

func nested(depth int) person {
	p := person{Name: "name \"quoted\" ä", Age: depth * 7, Tags: []string{"a", "bb", "ccc"}, Address: map[string]string{"city": "x", "street": "y"}, Scores: []float64{1.5, 2, 3e9}}
	for range depth {
		p.Friends = append(p.Friends, nested(depth-1))
	}
	return p
}

func main() {
	n := 10
	if len(os.Args) > 1 {
		if v, err := strconv.Atoi(os.Args[1]); err == nil {
			n = v
		}
	}
	doc, err := json.Marshal(nested(5))
	if err != nil {
		panic(err)
	}
	size := 0
	for range n {
		var p person
		if err := json.Unmarshal(doc, &p); err != nil {
			panic(err)
		}
		var loose map[string]any
		if err := json.Unmarshal(doc, &loose); err != nil {
			panic(err)
		}
		for _, v := range []any{p, loose} {
			out, err := json.Marshal(v)
			if err != nil {
				panic(err)
			}
			size += len(out)
		}
	}
	fmt.Println(len(doc), size)
}
