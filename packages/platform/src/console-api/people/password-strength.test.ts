import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertStrong } from './password-strength.ts'

const KNOWN = ['mara.lindqvist@acme.example', 'Mara Lindqvist', 'acme']

test('common passwords, patterns and personal words are refused, and never displayed', async () => {
  for (const [password, reason] of [
    ['password1234', /a common password with small changes/],
    ['123456789012', /a common password/],
    ['Password2026!', /common password/],
    ['aaaaaaaaaaaa', /repeats one character/],
    ['abcdefghijkl', /a sequence/],
    ['hunter2hunter2', /repeats one part/],
    ['qwertyuiop12', /common password|keys/],
    ['mara.lindqvist@acme.example', /your name, your e-mail address/],
    ['Mara Lindqvist', /your name/],
    ['lindqvist1234', /./],
  ] as const) {
    await assert.rejects(
      assertStrong(password, KNOWN),
      (error: { code: string; message: string; details: { field?: string } }) => {
        assert.equal(error.code, 'INVALID_REQUEST')
        assert.match(error.message, reason, password)
        assert.ok(!error.message.includes(password))
        return true
      },
    )
  }
})

test('accepts generated passwords and sentences in any script, and checks long ones quickly', async () => {
  for (const password of [
    'kJ8#vPq2!mZx',
    'correct horse battery staple',
    'blåbärssoppa i månsken',
    '蓝色 鲸鱼 在 月光 下 跳舞 吗',
    'xq7-Rtm4-92kd-LLp0',
    'acme pays late on rainy Thursdays',
  ])
    await assertStrong(password, KNOWN)
  await assertStrong(
    Array.from({ length: 256 }, (_, at) => String.fromCodePoint(33 + ((at * 7919) % 90))).join(''),
    KNOWN,
  )
})
