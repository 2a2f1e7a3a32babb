/** Sends a command to the control API of the local chains and returns its response. */
export type DevnetControl = (command: Record<string, unknown>) => Promise<Record<string, unknown>>
