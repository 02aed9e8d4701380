// A mix of queries for SQLite in memory: inserts by key, ranges, joins, groups, text, updates and
// deletes. Its argument is how many rounds it runs. It is compiled together with sqlite3.c.

#include <stdio.h>
#include <stdlib.h>

#include "sqlite3.h"

static sqlite3 *db;

static void run(const char *sql) {
  char *wrong = 0;
  if (sqlite3_exec(db, sql, 0, 0, &wrong) != SQLITE_OK) {
    fprintf(stderr, "%s: %s\n", sql, wrong);
    exit(1);
  }
}

static unsigned state = 1;
static unsigned draw(unsigned n) {
  state = state * 1103515245 + 12345;
  return (state >> 8) % n;
}

static void each(const char *sql, int n, unsigned a, unsigned b) {
  sqlite3_stmt *s;
  if (sqlite3_prepare_v2(db, sql, -1, &s, 0) != SQLITE_OK) {
    fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
    exit(1);
  }
  for (int i = 0; i < n; i++) {
    char text[32];
    unsigned x = draw(a);
    snprintf(text, sizeof text, "name %u of %u", x, draw(1000));
    sqlite3_bind_int(s, 1, (int)x);
    sqlite3_bind_int(s, 2, (int)draw(b));
    sqlite3_bind_text(s, 3, text, -1, SQLITE_TRANSIENT);
    while (sqlite3_step(s) == SQLITE_ROW) {
    }
    sqlite3_reset(s);
  }
  sqlite3_finalize(s);
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 5;
  for (int r = 0; r < rounds; r++) {
    if (sqlite3_open(":memory:", &db) != SQLITE_OK)
      return 1;
    run("create table a(id integer primary key, v int, t text); create table b(k int, v int, t text); create index bk on b(k)");
    run("begin");
    each("insert or replace into a values(?1, ?2, ?3)", 20000, 1000000, 1000);
    each("insert into b values(?1, ?2, ?3)", 20000, 5000, 1000);
    run("commit");
    each("select count(*), sum(v) from b where k between ?1 and ?1 + 50 and ?2 >= 0 and ?3 <> ''", 1500, 5000, 1000);
    each("select a.t, b.t from a join b on b.k = a.v where a.id >= ?1 and a.id < ?1 + 2000 and ?2 >= 0 and ?3 <> ''", 300, 1000000, 1000);
    each("select v, count(*), max(t) from a where v % 7 = ?1 % 7 and ?2 >= 0 and ?3 <> '' group by v order by 2 desc limit 10", 20, 1000, 1000);
    each("select count(*) from a where t like '%' || ?1 || '%' and ?2 >= 0 and ?3 <> ''", 20, 1000, 1000);
    run("begin");
    each("update b set v = v + ?2 where k = ?1 and ?3 <> ''", 10000, 5000, 100);
    each("delete from a where id between ?1 and ?1 + 100 and ?2 >= 0 and ?3 <> ''", 2000, 1000000, 10);
    run("commit");
    sqlite3_close(db);
  }
  puts("done");
}
