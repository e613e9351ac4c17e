package smb

import "ramserver/export/smb/wire"

const commandCount = int(wire.CommandOplockBreak) + 1

// commands is everything that the server answers. What has no function is not
// supported.
var commands [commandCount]command

func init() {
	commands = [...]command{
		wire.CommandNegotiate:      {name: "NEGOTIATE", size: 36, run: (*request).negotiate},
		wire.CommandSessionSetup:   {name: "SESSION_SETUP", size: 25, run: (*request).sessionSetup},
		wire.CommandLogoff:         {name: "LOGOFF", size: 4, needs: needSession, run: (*request).logoff},
		wire.CommandTreeConnect:    {name: "TREE_CONNECT", size: 9, needs: needSession, run: (*request).treeConnect},
		wire.CommandTreeDisconnect: {name: "TREE_DISCONNECT", size: 4, needs: needSession | needTree, run: (*request).treeDisconnect},
		wire.CommandCreate:         {name: "CREATE", size: 57, needs: needSession | needTree, run: (*request).create},
		wire.CommandClose:          {name: "CLOSE", size: 24, needs: needSession | needTree, run: (*request).closeFile},
		wire.CommandFlush:          {name: "FLUSH", size: 24, needs: needSession | needTree, run: (*request).flush},
		wire.CommandRead:           {name: "READ", size: 49, needs: needSession | needTree, run: (*request).read},
		wire.CommandWrite:          {name: "WRITE", size: 49, needs: needSession | needTree, run: (*request).write},
		wire.CommandLock:           {name: "LOCK", size: 48, needs: needSession | needTree, run: (*request).lock},
		wire.CommandIoctl:          {name: "IOCTL", size: 57, needs: needSession | needTree, run: (*request).ioctl},
		wire.CommandCancel:         {name: "CANCEL", size: 4},
		wire.CommandEcho:           {name: "ECHO", size: 4, run: (*request).echo},
		wire.CommandQueryDirectory: {name: "QUERY_DIRECTORY", size: 33, needs: needSession | needTree, run: (*request).queryDirectory},
		wire.CommandChangeNotify:   {name: "CHANGE_NOTIFY", size: 32, needs: needSession | needTree, run: (*request).notify},
		wire.CommandQueryInfo:      {name: "QUERY_INFO", size: 41, needs: needSession | needTree, run: (*request).queryInfo},
		wire.CommandSetInfo:        {name: "SET_INFO", size: 33, needs: needSession | needTree, run: (*request).setInfo},
		wire.CommandOplockBreak:    {name: "OPLOCK_BREAK", size: 24, needs: needSession},
	}
}
