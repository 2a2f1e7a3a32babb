import { addon } from './native.ts'

/** Result of each measure: `done`, `not on this system`, or `failed: ` and the reason. */
export interface Hardening {
  /** Prevents other processes of the same user from attaching a debugger or reading the memory. */
  attaching: string
  coreDumps: string
}

/**
 * Protects the memory of this process from other processes and from being written to disk. Never
 * throws. On Linux the files of the process in /proc then belong to root.
 */
export function hardenProcess(): Hardening {
  return addon.hardenProcess()
}
