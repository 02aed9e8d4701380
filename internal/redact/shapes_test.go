package redact

import (
	"strings"
	"testing"
)

// Each command has the secret x1hidden2x in a way that people write it; the rest of the line stays.
func TestSecretsInEveryShape(t *testing.T) {
	const x = "x1hidden2x"
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
	for _, args := range [][]string{
		{"java", "-password", x, "-jar", "app.jar"},
		{"keytool", "-list", "-storepass", x, "-keystore", "k.jks"},
		{"keytool", "-keypass", x},
		{"curl", "-H", "Authorization: Bearer " + x, "host"},
		{"curl", "-H", "Authorization: " + x},
		{"curl", "-H", "authorization:Basic " + x},
		{"curl", "-H", "Proxy-Authorization: Digest user=me, response=" + x},
		{"curl", "-H", "X-Api-Key: " + x, "host"},
		{"curl", "-H", "X-Auth-Token:" + x},
		{"curl", "-H", "Cookie: a=b; session=" + x},
		{"git", "clone", "https://" + x + "@host/repository"},
		{"git", "clone", "https://me:" + x + "@host/repository"},
		{"curl", "-u", "me:" + x, "host"},
		{"curl", "--user", "me:" + x},
		{"curl", "-ume:" + x},
		{"mysql", "-u", "me", "-p" + x, "db"},
		{"/usr/bin/mysqldump", "-psecret", "-p" + x},
		{"sudo", "mysql", "-p" + x},
		{"sshpass", "-p", x, "ssh", "host"},
		{"redis-cli", "-a", x},
		{"server", "-p" + x},
		{"app", "password:" + x},
		{"app", "db.password: " + x, "port: 80"},
		{"app", `{"user":"me","password":"` + x + `","port":80}`},
		{"app", `{"password" : "` + x + `", "a=b": 1}`},
		{"app", `{"a":{"apiKey":"\"` + x + `"}}`},
		{"app", `{\"password\":\"` + x + `\"}`},
		{"app", `{'password': '` + x + `'}`},
		{"app", `--config={"token":"` + x + `"}`},
		{"app", `--config=password:` + x},
		{"sh", "-c", "curl -H 'Authorization: Bearer " + x + "' host"},
		{"sh", "-c", "tool -password " + x + " --verbose"},
		{"app", "--bearer", x},
		{"app", "--license-key=" + x},
		{"app", "--otp", x},
		{"app", "--pat", x},
		{"app", "--creds", x},
		{"app", "--jwt=" + x},
		{"app", "--dsn=me:" + x + "@tcp(host:3306)/db"},
		{"app", "me:" + x + "@unix(/run/db)/db"},
		{"app", "me:p@" + x + "@tcp(host)/db"},
		{"app", "--dsn=me:" + x + "@ss@tcp(host)/db"},
		{"app", "me:" + x + "@cloudsql(project:region:name)/db"},
		{"azcopy", "cp", "https://host/a?sv=2020&sig=" + x},
		{"curl", "https://host/a?X-Amz-Date=5&X-Amz-Signature=" + x},
		{"sh", "-c", "curl -u me:" + x + " host"},
		{"sh", "-c", "curl --user 'me:" + x + "' host"},
		{"sh", "-c", "curl --user=\"me\":\"" + x + "\" -s"},
		{"sh", "-c", "curl -u '" + x + ":' host"},
		{"curl", "-u", x + ":", "host"},
		{"psql", "-c", "set token = '" + x + "'"},
		{"make", "API_TOKEN := " + x},
		{"make", "API_TOKEN ::= " + x},
		{"make", "API_TOKEN ?= " + x},
		{"ruby", "-e", "h = {'api_key' => '" + x + "'}"},
		{"php", "-r", "$token .= \"" + x + "\";"},
		{"groovy", "-e", "System.setProperty(\"API_TOKEN\", \"" + x + "\")"},
		{"go", "run", "var token string = \"" + x + "\""},
		{"js", "-e", "const t = { token = `" + x + "` }"},
		{"js", "-e", "env['API_TOKEN'] = '" + x + "'"},
		{"app", "<token>" + x + "</token>"},
		{"app", "<password>\n  " + x + "\n</password>"},
		{"app", `<add key="Password" value="` + x + `" />`},
		{"app", `{"env":[{"name":"DB_PASSWORD","value":"` + x + `"}]}`},
		{"app", `{"token"="` + x + `"}`},
		{"sh", "-c", `tool "password=a ` + x + ` b" --verbose`},
		{"sonar-scanner", "-Dsonar.login=" + x},
		{"app", "ghp_" + strings.Repeat("x1hidden2x", 4)},
		{"app", "--x=glpat-" + strings.Repeat("x1hidden2x", 4)},
	} {
		for name, got := range map[string]string{"arguments": Command(args), "a line": Line(strings.Join(args, " "))} {
			if strings.Contains(got, x) || !strings.Contains(got, Mask) {
				t.Errorf("%s: %q becomes %q", name, args, got)
			}
		}
		for _, whole := range []string{"host", "-jar", "k.jks", "repository", "db", "--verbose", "port: 80"} {
			if line := strings.Join(args, " "); strings.HasSuffix(line, whole) && !strings.HasSuffix(Command(args), whole) {
				t.Errorf("%q is missing in %q", whole, Command(args))
			}
		}
	}
	for _, secret := range []string{jwt, "AKIA" + "IOSFODNN7EXAMPLE"[:16], "xoxb-123456789012-abcdefABCDEF", "sk_live_abcdefghij1234"} {
		if got := Command([]string{"app", secret, "end"}); got != "app *** end" {
			t.Errorf("%q becomes %q", secret, got)
		}
	}
}

// Text without a secret stays as it is.
func TestNoSecrets(t *testing.T) {
	for _, line := range []string{
		"find . -print", "app --pattern x --path y --credit 5 --signal 9 mail@host:3306 a:b@host", "docker run -p 80:80 -p8080:80 image", "ssh -p2222 host", "git clone ssh://git@host/r", "javac -parameters -proc:none A.java",
		"java -Xlog:gc*:file=a.log -javaagent:/a/b.jar=c -cp a:b:c Main 12:30:45", "java -Djdk.net.URLClassPath=x -XX:+UseG1GC Main", "gcc -pthread -pipe x.c",
		"curl -s http://host:8080/path", "ls -u", "app -u me", "C:\\a\\b.exe", "perf record -p 1234", "app key: value", "mysql -P3306 --protocol tcp",
		"docker run -u 1000:1000 image", "sh -c docker run --user 1000:1000 image", "kubectl get my-secret name", "app key = value", "test $a = b", "app --set a,b x>y <name>z</name>", `app {"name":"PORT","value":"80"}`,
	} {
		if got := Command(strings.Split(line, " ")); got != line {
			t.Errorf("%q becomes %q", line, got)
		}
		if got := Line(line); got != line {
			t.Errorf("%q becomes %q in a line", line, got)
		}
	}
}

func FuzzArgs(f *testing.F) {
	f.Add("-H", `Authorization: Bearer x`, `{"password":"x"}`)
	f.Add("-u", "me:x", "mysql")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if got := Args([]string{a, b, c}); len(got) != 3 {
			t.Errorf("%q", got)
		}
	})
}

// In a longer text the secret alone is masked, and what follows it stays.
func TestSecretsInText(t *testing.T) {
	for text, want := range map[string]string{
		`token = "x"; port = 80`:                                    `token = ***; port = 80`,
		"kind: list\nurl = a\ntoken = x\nport = 80":                 "kind: list\nurl = a\ntoken = ***\nport = 80",
		"<token>x</token><port>80</port>":                           "<token>***</token><port>80</port>",
		`{"name":"TOKEN","value":"x"},{"name":"PORT","value":"80"}`: `{"name":"TOKEN","value":***},{"name":"PORT","value":"80"}`,
		`put("token", "x"); put("port", "80")`:                      `put("token", ***); put("port", "80")`,
		`curl -u "me:x" -o out host`:                                `curl -u "me:***" -o out host`,
		"curl -u me:x -o out host":                                  "curl -u me:*** -o out host",
		"curl -u x: -o out host":                                    "curl -u ***: -o out host",
		"app my-secret name --my-secret name end":                   "app my-secret name --my-secret *** end",
	} {
		if got := Args([]string{"sh", "-c", text})[2]; got != want {
			t.Errorf("%q becomes\n%q, want\n%q", text, got, want)
		}
	}
}
