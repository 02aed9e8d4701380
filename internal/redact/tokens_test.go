package redact

import (
	"strings"
	"testing"
)

// filler is characters that are in every set, of the given length: digits and the letters that
// hexadecimal numbers have too.
func filler(n int) string { return strings.Repeat("a1b2c3d4e5f60718", n/16+1)[:n] }

// capital is filler in capital letters.
func capital(n int) string { return strings.ToUpper(filler(n)) }

// Tokens of well-known services are masked wherever they are, whole, and nothing around them. Each is
// as long as the shortest that the service gives out.
func TestTokens(t *testing.T) {
	for _, token := range []string{
		"ghp_" + filler(36), "gho_" + filler(36), "ghu_" + filler(36), "ghs_" + filler(36), "ghr_" + filler(36), "github_pat_" + filler(22) + "_" + filler(59),
		"glpat-" + filler(20), "gldt-" + filler(20), "glptt-" + filler(40), "glrt-" + filler(20), "glagent-" + filler(50),
		"AKIA" + capital(16), "ASIA" + capital(16), "LTAI" + filler(20),
		"xoxb-" + "123456789012-123456789012-" + filler(24), "xoxp-" + filler(30), "xoxe.xoxp-1-" + filler(40), "xapp-1-A0-" + filler(30),
		"sk_live_" + filler(24), "rk_test_" + filler(24), "whsec_" + filler(32),
		"sk-" + filler(48), "sk-ant-api03-" + filler(80) + "-AA", "sk-proj-" + filler(60), "gsk_" + filler(52), "pplx-" + filler(48), "hf_" + filler(34), "r8_" + filler(37),
		"AIza" + filler(35), "ya29." + filler(40), "GOCSPX-" + filler(28), "1//0" + filler(40),
		"npm_" + filler(36), "pypi-AgEIcHlwaS5vcmc" + filler(60), "rubygems_" + filler(48), "CLOJARS_" + filler(60),
		"hvs." + filler(90), "hvb." + filler(100), "dop_v1_" + filler(64), "SG." + filler(22) + "." + filler(43), "xkeysib-" + filler(64) + "-" + filler(16),
		"key-" + filler(32), "SK" + filler(32), "shpat_" + filler(32), "sq0atp-" + filler(22), "dapi" + filler(32), "dp.pt." + filler(43),
		"lin_api_" + filler(40), "ntn_" + filler(46), "secret_" + filler(43), "PMAK-" + filler(24) + "-" + filler(34), "pul-" + filler(40), "NRAK-" + capital(27),
		"glsa_" + filler(32) + "_" + filler(8), "glc_ey" + filler(60), "dckr_pat_" + filler(27), "ATATT3xFf" + filler(180) + "=" + capital(8), "sl." + filler(140),
		"AGE-SECRET-KEY-1" + capital(58), "sntryu_" + filler(64), "pnu_" + filler(36), "pscale_tkn_" + filler(43), "tskey-auth-" + filler(12) + "-" + filler(32),
		"dt0c01." + capital(24) + "." + capital(64), "sha256~" + filler(43), "fo1_" + filler(43), "HRKU-AA" + filler(58), "AKCp" + filler(69),
		filler(14) + ".atlasv1." + filler(67), "1234567890:AA" + filler(33), filler(32) + "-us12", "abc8Q~" + filler(34), "pat" + filler(14) + "." + filler(64),
		"A3-" + capital(6) + "-" + capital(11) + "-" + capital(5) + "-" + capital(5) + "-" + capital(5), "A3-" + capital(6) + "-" + capital(6) + "-" + capital(5) + "-" + capital(5) + "-" + capital(5) + "-" + capital(5), "ops_ey" + filler(260),
		"p8e-" + filler(32), "cmVmd" + filler(59), "sc_" + filler(9) + "." + filler(4) + ".acc_" + filler(10) + "." + filler(40), "bedrock-api-key-" + filler(32), "4b1d" + filler(38), "v1.0-" + filler(24) + "-" + filler(146),
		"dnkey-" + filler(26) + "-" + filler(52), "EAAC" + filler(110), "EAAA" + filler(60), "911602140448729|" + filler(27), "FLWSECK_TEST-" + filler(32) + "-X", "FLWPUBK_TEST-" + filler(32) + "-X", "fio-u-" + filler(64), "live_" + filler(40),
		"GR1348941" + filler(20), "glpat-" + filler(27) + ".a1" + filler(7), "eyJrIjoi" + filler(70), "pat." + filler(22) + "." + filler(24) + "." + filler(20), "api_org_" + filler(34), "ico-" + filler(32), "s-s4t2ud-" + filler(64), "pk." + filler(60) + "." + filler(22),
		filler(6) + "_" + filler(29) + "_mmk", "API-" + capital(26), "access-sandbox-" + filler(8) + "-a1b2-c3d4-e5f6-" + filler(12), "rdme_" + filler(70), "tk-us-" + filler(48), "sm_pat_" + filler(16), "sgp_local_" + filler(40), "squ_" + filler(40),
		"s." + filler(24), "AQVN" + filler(35), "ZXlK" + filler(60), "t1." + filler(10) + "." + filler(86), strings.Repeat("A", 22) + filler(80), "SG." + filler(20) + "=" + filler(45), "pscale_pw_" + filler(20) + "=" + filler(20), "dt0c01." + filler(24) + "." + filler(64),
		"~ab8Q~" + filler(34), "1234567:A" + filler(34),
		"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ." + filler(38), "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + filler(43),
		"-----BEGIN " + "RSA PRIVATE KEY-----\n" + filler(64) + "\n" + filler(64) + "\n-----END " + "RSA PRIVATE KEY-----",
		"-----BEGIN " + "PRIVATE KEY-----\\n" + filler(64) + "\\n-----END " + "PRIVATE KEY-----",
		"-----BEGIN " + "OPENSSH PRIVATE KEY-----" + filler(64) + "-----END " + "OPENSSH PRIVATE KEY-----",
		"-----BEGIN " + "PGP PRIVATE KEY BLOCK-----" + filler(64) + "-----END " + "PGP PRIVATE KEY BLOCK-----",
	} {
		for _, c := range []struct{ before, after string }{{"", ""}, {"x=", ""}, {"-Dx=", ""}, {"'", "'"}, {"(", ") y"}, {"a, ", ", b"}, {"http://host/", "?y"}} {
			text := c.before + token + c.after
			want := c.before + Mask + c.after
			for how, got := range map[string]string{"an argument": Args([]string{"app", text})[1], "a line": Line("app " + text)[4:], "a property": Value("x", text)} {
				if got != want {
					t.Errorf("%s: %q becomes %q, want %q", how, text, got, want)
				}
			}
		}
		// One that is cut short is none, unless what is left is one of another kind.
		if short := token[:min(len(token)/3, 15)]; !strings.HasPrefix(token, "-----") && Value("x", short) != short && !strings.HasPrefix(token, "sk_") && !strings.HasPrefix(token, "xox") {
			t.Errorf("%q, a part of a token, is masked", short)
		}
	}
	for text, want := range map[string]string{
		"https://hooks.slack.com/services/T0123/B0123/" + filler(24):                                                 "https://hooks.slack.com/services/" + Mask,
		"https://discord.com/api/webhooks/1234567890/" + filler(68):                                                  "https://discord.com/api/webhooks/1234567890/" + Mask,
		"https://x.webhook.office.com/webhookb2/" + filler(36) + "@" + filler(36) + "/IncomingWebhook/" + filler(32): "https://x.webhook.office.com/webhookb2/" + Mask,
		"https://a.blob.core.windows.net/c?sv=2022&sig=" + filler(30) + "%3D":                                        "https://a.blob.core.windows.net/c?sv=2022&sig=" + Mask,
		"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=" + filler(86) + "==;EndpointSuffix=b":              "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=" + Mask + ";EndpointSuffix=b",
		"Endpoint=sb://a/;SharedAccessKeyName=b;SharedAccessKey=" + filler(43) + "=":                                 "Endpoint=sb://a/;SharedAccessKeyName=" + Mask + ";SharedAccessKey=" + Mask,
		"curl -b _gitlab_session=" + filler(32) + " host":                                                            "curl -b _gitlab_session=" + Mask + " host",
		"BUNDLE_GEMS__CONTRIBSYS__COM=" + filler(8) + ":" + filler(8):                                                "BUNDLE_GEMS__CONTRIBSYS__COM=" + Mask,
		"AWS_SECRET_ACCESS_KEY=" + filler(40):                                                                        "AWS_SECRET_ACCESS_KEY=" + Mask,
	} {
		if got := Value("x", text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// Ordinary options of Java and .NET programs, and what looks a little like a token, stay as they are.
func TestNoTokens(t *testing.T) {
	for _, line := range []string{
		"java -server -Xms512m -Xmx4g -Xss1m -Xmn256m -XX:MaxMetaspaceSize=256m -XX:+UseG1GC -XX:MaxGCPauseMillis=200 -XX:+ParallelRefProcEnabled -XX:InitiatingHeapOccupancyPercent=35 Main",
		"java -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints -XX:+PreserveFramePointer -XX:+UseZGC -XX:+ZGenerational -XX:ConcGCThreads=2 -XX:-OmitStackTraceInFastThrow Main",
		"java -XX:+HeapDumpOnOutOfMemoryError -XX:HeapDumpPath=/var/log/app -XX:ErrorFile=/var/log/app/hs_err_pid%p.log -XX:OnOutOfMemoryError=/bin/restart -XX:+ExitOnOutOfMemoryError Main",
		"java -XX:StartFlightRecording=duration=60s,filename=/tmp/a.jfr,settings=profile -XX:FlightRecorderOptions=stackdepth=128 -XX:NativeMemoryTracking=summary -XX:SharedArchiveFile=app.jsa -Xshare:auto Main",
		"java -XX:CompileCommand=dontinline,java.lang.String::hashCode -XX:CICompilerCount=4 -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseStringDeduplication -Xlog:gc*,safepoint:file=gc.log:time,uptime:filecount=5,filesize=10m Main",
		"java --add-opens java.base/java.lang=ALL-UNNAMED --add-exports=jdk.compiler/com.sun.tools.javac.api=ALL-UNNAMED --enable-preview --module-path mods -m app/com.example.Main",
		"java -Dfile.encoding=UTF-8 -Duser.timezone=UTC -Djava.io.tmpdir=/tmp -Djava.net.preferIPv4Stack=true -Dsun.net.inetaddr.ttl=60 -Dcom.sun.management.jmxremote.port=9010 -Dlogback.configurationFile=/etc/logback.xml Main",
		"java -agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=*:5005 -javaagent:/opt/agent/agent.jar=port=8080 -jar /opt/app/app-1.2.3-SNAPSHOT.jar --spring.profiles.active=prod --server.port=8443",
		"/usr/lib/jvm/java-17-openjdk-amd64/bin/java -cp /opt/kafka/libs/activation-1.1.1.jar:/opt/kafka/libs/scala-library-2.13.12.jar:/opt/kafka/libs/zstd-jni-1.5.5-6.jar kafka.Kafka /etc/kafka/server.properties",
		"java -Dproc_namenode -Dhadoop.id.str=hdfs -Dyarn.app.container.log.dir=/x/container_1410901177871_0001_01_000005 org.apache.hadoop.mapred.YarnChild 10.0.0.1 attempt_1410901177871_0001_m_000003_0 5",
		"java org.elasticsearch.bootstrap.Elasticsearch -Des.networkaddress.cache.ttl=60 -Des.distribution.type=tar MyOrganizationInternalTool.server.AbstractConfigurationManagerFactory",
		"dotnet exec --runtimeconfig app.runtimeconfig.json --depsfile app.deps.json app.dll --urls http://0.0.0.0:5000", "node --max-old-space-size=4096 --inspect=127.0.0.1:9229 server.js",
		"git checkout 0123456789abcdef0123456789abcdef01234567", "docker pull app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"sk-SK", "app sk-backend-service-in-production", "AKIAB", "xox", "hf_model", "/data/pat/x", "SKIP", "npm_config_cache=/x", "key-value", "1/2", "sha256~", "SG.X", "glc_", "sl.so", "dapi.jar", "ghp_", "secret_santa.jar",
		"-----BEGIN " + "CERTIFICATE-----", "-----BEGIN " + "PUBLIC KEY-----", "hooks.slack.com", "0123456789:Ab", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "user-us1",
		"http://host/video_box.ico-0123456789abcdef0123456789abcdef.png", "hf_a_name_of_a_function_that_is_long", "hf_requiredNamesOfCharacteristicsForDisplaying", "API-VERSION", "live_view", "s.x", "pat.a.b", "access-sandbox-a", "4b1d", "v1.0-rc1",
	} {
		if got := Command(strings.Split(line, " ")); got != line {
			t.Errorf("%q becomes\n%q", line, got)
		}
		if got := Line(line); got != line {
			t.Errorf("%q becomes\n%q in a line", line, got)
		}
	}
}

// A text of a megabyte of what tokens begin with takes no longer by the byte than a short one.
func TestLongTokens(t *testing.T) {
	const n = 1 << 20
	for i := range kinds {
		for _, p := range strings.Fields(kinds[i].prefixes) {
			for _, piece := range []string{p, p + "-", p + ".", p + filler(8) + "."} {
				tokens(strings.Repeat(piece, n/16/len(piece)))
			}
		}
	}
	for _, piece := range []string{"sk-", "sk-a", "-----BEGIN PRIVATE KEY-----", "ey.", "eyaaaaaaaaaaaa.", ":AA", "1234567890:AA", "Q~", "-us", "?sig=", "pat."} {
		tokens(strings.Repeat(piece, n/len(piece)))
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("x ", "ghp_", " y")
	f.Add("-----BEGIN PRIVATE", "KEY-----", "=xoxb-1")
	f.Fuzz(func(t *testing.T, before, s, after string) {
		got := tokens(before + "(" + "ghp_" + filler(36) + ")" + s + after)
		if strings.Contains(got, "ghp_"+filler(36)) && !strings.Contains(before+s+after, "ghp_") {
			t.Errorf("%q", got)
		}
	})
}
