import { addon } from './native.ts'

/** Of each measure: `done`, `not on this system`, or `failed: ` and why. */
export interface Hardening {
  /** Other processes of the same user cannot attach a debugger or read the memory. */
  attaching: string
  coreDumps: string
}

/**
 * Keeps the memory of this process away from other processes and from the disk. Never throws. On
 * Linux the files of the process in /proc then belong to root.
 */
export function hardenProcess(): Hardening {
  return addon.hardenProcess()
}
