package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// tool is a profiler of running programs.
type tool struct {
	name string
	hz   float64                       // samples per second of CPU time that it takes; 0: none
	on   func(pid int) (func(), error) // starts it; the result stops it
}

// cost measures what profiling costs the target: the CPU time that a unit of its work takes, with a
// tool and without, in turn, in one process.
func (b *bench) cost() {
	fail := func(err error) {
		b.add(row{Section: "cost", What: "target cost", Failed: err.Error()})
	}
	cp, err := b.compile("17", "Steady.java")
	if err != nil {
		fail(err)
		return
	}
	rounds, window := 5, 3
	if b.quick {
		rounds, window = 2, 3
	}
	p, err := start("", b.java("17"), "-cp", cp, "Steady", "3600", "200")
	if err != nil {
		fail(err)
		return
	}
	defer p.stop()
	type line struct {
		perUnit float64 // ns of CPU time
		at      time.Time
	}
	lines := make(chan line, 1000)
	go func() {
		for p.out.Scan() {
			var units, cpu float64
			if n, _ := fmt.Sscanf(p.out.Text(), "%g %g", &units, &cpu); n == 2 && units > 0 {
				lines <- line{cpu / units, time.Now()}
			}
		}
		close(lines)
	}()
	// measure returns the CPU time per unit in whole seconds from now on.
	measure := func(n int) ([]float64, error) {
		from := time.Now()
		var v []float64
		deadline := time.After(time.Duration(n+10) * time.Second)
		for len(v) < n {
			select {
			case l, ok := <-lines:
				if !ok {
					return nil, fmt.Errorf("the program ended")
				}
				if l.at.Sub(from) > time.Second {
					v = append(v, l.perUnit)
				}
			case <-deadline:
				return nil, fmt.Errorf("the program stands still")
			}
		}
		return v, nil
	}
	if _, err := measure(3); err != nil {
		fail(err)
		return
	}

	candid := func(name string, hz float64, flags ...string) tool {
		return tool{name, hz, func(pid int) (func(), error) {
			args := append([]string{"record", "-q", "--force", "-p", fmt.Sprint(pid), "-F", fmt.Sprint(hz), "-o", filepath.Join(b.work, "cost.jfr")}, flags...)
			return run(exec.Command(b.candid, args...))
		}}
	}
	perf := func(name string, hz float64, flags ...string) tool {
		return tool{name, hz, func(pid int) (func(), error) {
			args := append([]string{"record", "-q", "-e", "cpu-clock", "-F", fmt.Sprint(hz), "-o", filepath.Join(b.work, "perf.data")}, flags...)
			return run(exec.Command("perf", args...))
		}}
	}
	tools := []tool{
		candid("candid at 99 Hz", 99),
		candid("candid at 1 kHz", 1000),
		candid("candid at 5 kHz", 5000),
		perf("perf event alone at 5 kHz (perf record -a, no stacks)", 5000, "-a"),
		perf("perf record -a -g at 1 kHz (frame pointers)", 1000, "-a", "-g"),
		{"JFR, profile settings (100 Hz)", 100, func(pid int) (func(), error) {
			jcmd := filepath.Join(filepath.Dir(b.java("17")), "jcmd")
			if out, err := exec.Command(jcmd, fmt.Sprint(pid), "JFR.start", "name=bench", "settings=profile").CombinedOutput(); err != nil {
				return nil, fmt.Errorf("jcmd JFR.start: %w: %s", err, firstLine(out))
			}
			return func() { _ = exec.Command(jcmd, fmt.Sprint(pid), "JFR.stop", "name=bench").Run() }, nil
		}},
	}
	ratios := make(map[string][]float64)
	unit := 0.0
	for range rounds {
		// The smallest effects need the most measurements.
		for _, t := range append([]tool{tools[0]}, tools...) {
			without, err := measure(window)
			if err != nil {
				fail(err)
				return
			}
			stop, err := t.on(p.pid())
			if err != nil {
				ratios[t.name] = nil
				continue
			}
			time.Sleep(300 * time.Millisecond)
			with, err := measure(window)
			stop()
			if err != nil {
				fail(err)
				return
			}
			again, err := measure(window)
			if err != nil {
				fail(err)
				return
			}
			// The machine's speed drifts: the measurements before and after are the baseline.
			base, _, _ := spread(append(without, again...))
			m, _, _ := spread(with)
			unit = base
			ratios[t.name] = append(ratios[t.name], m/base-1)
		}
	}
	for _, t := range tools {
		v := ratios[t.name]
		if len(v) == 0 {
			b.add(row{Section: "cost", What: "target CPU, " + t.name, Failed: "the tool could not be started"})
			continue
		}
		m, lo, hi := spread(v)
		r := row{Section: "cost", What: "target's CPU per unit of work, " + t.name, Value: 100 * m, Min: 100 * lo, Max: 100 * hi, Runs: len(v), Unit: "% more"}
		switch t.name {
		case "candid at 99 Hz":
			r.Bar = "≤ 0.5 %"
		case "candid at 1 kHz":
			r.Bar = "≤ 2.5 %"
		}
		r.Note = fmt.Sprintf("%.1f µs a sample; a unit takes %.1f µs, 200 frames deep", 1e6*m/t.hz, unit/1e3)
		b.add(r)
	}
	b.own(p.pid())
}

// own measures what candid itself uses while it records the steady program.
func (b *bench) own(pid int) {
	secs := b.seconds(30)
	var cpu, rss, copying []float64
	for range 3 {
		rec, err := b.attachTo(pid, time.Duration(secs)*time.Second, "-F", "1000")
		if err != nil || rec.summary.All.Samples == 0 {
			b.add(row{Section: "cost", What: "candid's own CPU", Failed: fmt.Sprint("no samples ", err)})
			return
		}
		cpu = append(cpu, rec.summary.OwnCPU/rec.summary.All.Samples/1e3)
		rss = append(rss, rec.summary.MaxRSS/1e6)
		copying = append(copying, rec.summary.TargetCost/rec.summary.All.Samples/1e3)
	}
	m, lo, hi := spread(cpu)
	b.add(row{Section: "cost", What: "candid's own CPU per sample at 1 kHz, 200 frames", Value: m, Min: lo, Max: hi, Runs: len(cpu), Unit: "µs", Bar: "≤ 15 µs"})
	m, lo, hi = spread(copying)
	b.add(row{Section: "cost", What: "what the BPF program takes of the target per sample, 200 frames, by the kernel's account", Value: m, Min: lo, Max: hi, Runs: len(copying), Unit: "µs", Note: "the copy and all around it, without the interrupt"})
	m, lo, hi = spread(rss)
	b.add(row{Section: "cost", What: fmt.Sprintf("candid's peak memory, %d s at 1 kHz", secs), Value: m, Min: lo, Max: hi, Runs: len(rss), Unit: "MB", Bar: "< 150 MB"})
}

// run starts a tool; the result interrupts it and waits for its end.
func run(cmd *exec.Cmd) (func(), error) {
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	}, nil
}

// attach measures the time from the start of attaching to the first walked sample, on a JVM with
// 10,000 compiled methods.
func (b *bench) attach() {
	r := row{Section: "attach", What: "attach to first walked sample, 10,000 compiled methods, JDK 17, 1 kHz", Unit: "ms", Bar: "≤ 100 ms"}
	whole := row{Section: "attach", What: "the same from the start of the candid process to its end with -d 50ms", Unit: "ms"}
	cp, err := b.compile("17", "Many.java")
	if err == nil {
		var p *program
		p, err = start("ready", b.java("17"), "-XX:TieredStopAtLevel=1", "-Xbatch", "-cp", cp, "Many", "10000", "600")
		if err == nil {
			defer p.stop()
			var first, all []float64
			for range 10 {
				var rec *recording
				begin := time.Now()
				rec, err = b.attachTo(p.pid(), 50*time.Millisecond, "-F", "1000")
				if err != nil {
					break
				}
				all = append(all, float64(time.Since(begin))/1e6)
				first = append(first, rec.summary.FirstWalked/1e6)
			}
			r.Value, r.Min, r.Max = spread(first)
			whole.Value, whole.Min, whole.Max = spread(all)
			r.Runs, whole.Runs = len(first), len(all)
		}
	}
	if err != nil {
		r.Failed, whole.Failed = err.Error(), err.Error()
	}
	b.add(r)
	b.add(whole)
}

// real records real programs and reports how many of their stacks are complete.
func (b *bench) real() {
	apps := filepath.Join(b.cache, "apps")
	secs := b.seconds(20)
	type prog struct {
		name, jdk string
		argv      func() ([]string, error)
	}
	progs := []prog{
		{"javac on java.base", "17", b.javac},
		{"H2, SHA-256 over rows", "17", func() ([]string, error) {
			sql := fmt.Sprintf("SELECT SUM(LENGTH(HASH('SHA256', STRINGTOUTF8(X || 'x'), %d))) FROM SYSTEM_RANGE(1, %d)", 20, 200000*secs)
			return []string{"-cp", filepath.Join(apps, "h2", "h2.jar"), "org.h2.tools.Shell", "-url", "jdbc:h2:mem:", "-user", "sa", "-sql", sql}, nil
		}},
		{"Clojure, map and reduce", "17", func() ([]string, error) {
			code := fmt.Sprintf("(let [end (+ (System/currentTimeMillis) %d)] (while (< (System/currentTimeMillis) end) (reduce + (map #(* %% %%) (filter odd? (range 100000))))))", 1000*secs)
			return []string{"-cp", filepath.Join(apps, "clojure", "*"), "clojure.main", "-e", code}, nil
		}},
		{"Closure compiler on its own externs", "21", func() ([]string, error) {
			return b.closure(apps)
		}},
		{"Tomcat 10 under load", "17", func() ([]string, error) {
			found, err := filepath.Glob(filepath.Join(apps, "tomcat", "*.jar"))
			if err != nil || len(found) == 0 {
				return nil, fmt.Errorf("no Tomcat: scripts/get-apps.sh tomcat")
			}
			jars := strings.Join(found, ":")
			cp, err := b.compile("17", "Web.java", "-cp", jars)
			return []string{"-cp", cp + ":" + jars, "Web", fmt.Sprint(secs)}, err
		}},
	}
	for _, p := range progs {
		b.realProgram(p.name, p.jdk, p.argv)
	}
}

func (b *bench) realProgram(name, jdk string, argv func() ([]string, error)) {
	complete := row{Section: "real", What: "complete stacks, " + name + ", JDK " + jdk, Unit: "%", Bar: "≥ 99.9 %"}
	named := row{Section: "real", What: "frames with a name, " + name + ", JDK " + jdk, Unit: "%"}
	args, err := argv()
	if err == nil {
		var rec *recording
		rec, err = b.launch([]string{"-F", "997"}, append([]string{b.java(jdk)}, args...)...)
		if err == nil {
			q := rec.profile.Quality()
			if q.Samples == 0 {
				err = fmt.Errorf("no samples")
			} else {
				pc := func(n uint64) float64 { return 100 * float64(n) / float64(q.Samples) }
				complete.Value = pc(q.Complete + q.Stitched)
				complete.Note = fmt.Sprintf("%d samples; stitched %.3f, heuristic %.3f, truncated %.3f, broken %.3f %%; lost %d; %.1f µs own CPU a sample, %.0f MB",
					q.Samples, pc(q.Stitched), pc(q.Heuristic), pc(q.Truncated), pc(q.Broken), rec.profile.Losses.Lost,
					rec.summary.OwnCPU/float64(q.Samples)/1e3, rec.summary.MaxRSS/1e6)
				with, files := framesWithNames(rec.profile)
				named.Value, named.Note = with, files
			}
		}
	}
	if err != nil {
		complete.Failed, named.Failed = err.Error(), err.Error()
	}
	b.add(complete)
	b.add(named)
}

// javac returns the arguments that make javac compile a large part of the JDK.
func (b *bench) javac() ([]string, error) {
	src := filepath.Join(b.work, "jdksrc")
	jar := exec.Command(filepath.Join(filepath.Dir(b.java("17")), "jar"), "xf", filepath.Join(b.cache, "apps", "jdksrc", "src.zip"), "java.base/java/util", "java.base/java/math", "java.base/java/io")
	if err := exec.Command("mkdir", "-p", src).Run(); err != nil {
		return nil, err
	}
	jar.Dir = src
	if out, err := jar.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("unpack the JDK's sources: %w: %s", err, firstLine(out))
	}
	// The sources may be newer than the JDK that compiles them; the remaining ones fit.
	if err := os.RemoveAll(filepath.Join(src, "java.base", "java", "util", "jar")); err != nil {
		return nil, err
	}
	list := filepath.Join(b.work, "files")
	if out, err := exec.Command("sh", "-c", "find "+src+"/java.base -name '*.java' > "+list).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("list the sources: %w: %s", err, firstLine(out))
	}
	return []string{"-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-XDignore.symbol.file", "-proc:none",
		"--patch-module", "java.base=" + src + "/java.base", "-d", filepath.Join(b.work, "classes"), "@" + list}, nil
}

// closure returns the arguments that make the Closure compiler compile the JavaScript that comes
// with it.
func (b *bench) closure(apps string) ([]string, error) {
	jar := filepath.Join(apps, "closure", "compiler.jar")
	out := filepath.Join(b.work, "closure")
	script := fmt.Sprintf("mkdir -p %[1]s && cd %[1]s && unzip -qo %[2]s externs.zip && unzip -qo externs.zip", out, jar)
	if msg, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("unpack externs: %w: %s", err, firstLine(msg))
	}
	js, err := filepath.Glob(filepath.Join(out, "*.js"))
	if err != nil || len(js) == 0 {
		return nil, fmt.Errorf("the jar holds no JavaScript")
	}
	args := []string{"-jar", jar, "-O", "ADVANCED", "-W", "QUIET", "--env", "CUSTOM", "--js_output_file", filepath.Join(out, "out.txt")}
	for _, f := range js {
		if !strings.Contains(f, "nonstandard") {
			args = append(args, "--js", f)
		}
	}
	return args, nil
}
