package postgrestest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// longestSocketDir leaves room for "/.s.PGSQL.12345" in a socket address.
const longestSocketDir = 85

// configuration returns what goes to the end of postgresql.conf.
func configuration(opts Options, dir directory) string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(dir.port),
		"unix_socket_directories": dir.path,
		"max_connections":         strconv.Itoa(cmp.Or(opts.MaxConnections, 100)),
		"timezone":                "Pacific/Chatham",
		"log_timezone":            "UTC",
	}
	if len(dir.path) > longestSocketDir {
		settings["unix_socket_directories"] = ""
	}
	if !opts.Durable {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, opts.Settings)

	var conf strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&conf, "%s = %s\n", name, quote(settings[name]))
	}
	return conf.String()
}

// Set changes one setting for sessions old and new, as ALTER SYSTEM and a
// reload do. A session reads the change before its next statement. Settings
// that need a restart take effect at the next Start.
func (s *Server) Set(ctx context.Context, name, value string) error {
	err := s.admin(ctx, func(conn *pgx.Conn) error {
		var before, now time.Time
		if err := conn.QueryRow(ctx, "select pg_conf_load_time()").Scan(&before); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "alter system set "+name+" = "+quote(value)); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "select pg_reload_conf()"); err != nil {
			return err
		}
		for now = before; now.Equal(before); {
			if err := conn.QueryRow(ctx, "select pg_conf_load_time()").Scan(&now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	return nil
}

// SetReadOnly makes every new transaction read-only, as after a failover to a
// standby: writes fail with SQLSTATE 25006.
func (s *Server) SetReadOnly(ctx context.Context) error {
	return s.Set(ctx, "default_transaction_read_only", "on")
}

// SetWritable undoes SetReadOnly.
func (s *Server) SetWritable(ctx context.Context) error {
	return s.Set(ctx, "default_transaction_read_only", "off")
}

// quote writes a string as SQL and postgresql.conf both read it.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
