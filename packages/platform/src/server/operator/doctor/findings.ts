import { asInstalled } from '@custody/chains/terminal'

/**
 * A result of the doctor. An error is a function that has stopped or will stop; a warning should be
 * resolved before it becomes an error.
 */
export interface Finding {
  area: 'platform' | 'signers' | 'database' | 'disk' | 'certificates'
  level: 'ok' | 'warning' | 'error'
  message: string
  /** What the operator should do; null if there is nothing to do. */
  advice: string | null
}

export const ok = (area: Finding['area'], message: string): Finding => ({
  area,
  level: 'ok',
  message,
  advice: null,
})
export const warning = (area: Finding['area'], message: string, advice: string): Finding => ({
  area,
  level: 'warning',
  message,
  advice: asInstalled(advice),
})
export const problem = (area: Finding['area'], message: string, advice: string): Finding => ({
  area,
  level: 'error',
  message,
  advice: asInstalled(advice),
})

const AREA_WIDTH = 13

export const findingLine = ({ area, level, message, advice }: Finding): string =>
  `${area.padEnd(AREA_WIDTH)}${level === 'ok' ? '' : `${level.toUpperCase()}: `}${message}${advice === null ? '' : `; ${advice}`}`
