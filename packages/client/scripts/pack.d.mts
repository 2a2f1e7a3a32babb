/** @param out the folder to make @returns the manifest */
export function makePackage(out: string): Promise<{ dependencies: Record<string, string> }>
