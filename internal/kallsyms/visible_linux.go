package kallsyms

// Visible reports whether the kernel shows its addresses to every user, as kallsyms_show_value in
// kernel/ksyms_common.c decides without CAP_SYSLOG.
func Visible() bool {
	paranoid := sysctl("kernel/perf_event_paranoid")
	return sysctl("kernel/kptr_restrict") == "0" && (paranoid == "1" || paranoid == "0" || paranoid == "-1")
}
