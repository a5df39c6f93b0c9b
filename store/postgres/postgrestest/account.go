package postgrestest

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// account is who runs the server: whoever runs the tests, unless that is root,
// as whom PostgreSQL refuses to run.
type account struct {
	other    bool
	uid, gid int
}

func serverAccount() (account, error) {
	if os.Getuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		if errUID == nil && errGID == nil {
			return account{other: true, uid: uid, gid: gid}, nil
		}
	}
	return account{}, fmt.Errorf("PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it")
}

// own hands a directory over to the account.
func (a account) own(path string) error {
	if !a.other {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}
