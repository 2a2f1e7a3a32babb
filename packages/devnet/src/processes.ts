import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

/** The command line of a running process, or '' when there is none. */
export function commandLine(pid: number): string {
  if (existsSync('/proc/self/cmdline')) {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    } catch {
      return '';
    }
  }
  return spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout ?? '';
}

/**
 * Ends what a killed run left behind. A pid may have been given to a stranger since, so the process
 * counts as ours only if its command line carries `mark` (a path inside our own home).
 */
export async function endLeftover(pidFile: string, mark: string): Promise<void> {
  const pid = existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8')) : 0;
  if (Number.isInteger(pid) && pid > 1 && pid !== process.pid) {
    for (let attempt = 0; attempt < 100 && commandLine(pid).includes(mark); attempt += 1) {
      try {
        process.kill(pid, attempt < 20 ? 'SIGTERM' : 'SIGKILL');
      } catch {
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  rmSync(pidFile, { force: true });
}

export function writePidFile(path: string, pid: number): void {
  writeFileSync(path, String(pid), { mode: 0o600 });
}
