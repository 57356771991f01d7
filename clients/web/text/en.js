// Every English text of the page. To translate, copy this file and add it to index.js.
// Texts with a number or a name are functions; `count` picks the form by the language's rules.

const RULES = new Intl.PluralRules('en');
const number = new Intl.NumberFormat('en');
const share = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 0 });
const decimals = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

const count = (n, forms) => (forms[RULES.select(n)] ?? forms.other).replace('#', number.format(n));
const list = (names) => new Intl.ListFormat('en').format(names);
const pictures = (n) => count(n, { one: '# picture', other: '# pictures' });
const classes = (n) => count(n, { one: '# thing', other: '# things' });

export const text = {
  title: 'Teach by showing',
  percent: (value) => share.format(value),
  pictures,
  list,

  // The frame of the page.
  head: {
    undo: 'Undo',
    undoHint: (change) => (change ? `Undo: ${change}` : 'Nothing to undo'),
    check: 'Check-up',
    files: 'Save and load',
    settings: 'Settings',
    skip: 'Skip to the things it knows',
  },
  common: {
    cancel: 'Cancel',
    close: 'Close',
    delete: 'Delete',
    save: 'Save',
    retry: 'Try again',
    all: 'Select all',
    none: 'Select none',
    working: 'One moment …',
  },

  // The live view.
  live: {
    section: 'Camera',
    picture: 'Live picture of the camera; the marked square is what the device looks at',
    starting: 'Starting the camera …',
    allow: 'Please allow the camera, so that you can show it things.',
    nothing: 'Nothing learned yet',
    nothingHint: 'Hold something in front of the camera and choose “New thing”.',
    unsure: 'Not sure yet',
    unknown: 'Unknown',
    unknownHint: 'This does not look like anything it has learned.',
    unsureHint: (label) => (label ? `Perhaps ${label}` : 'Hold still for a moment.'),
    agreement: (value) => `${share.format(value)} of pictures agree`,
    familiarity: 'Familiar',
    familiarityValue: (value) => share.format(value),
    guesses: 'Best three guesses',
    speed: (perSecond) => `${number.format(Math.round(perSecond))} / s`,
    speedHint: 'Answers a second',
    waiting: 'Waiting for a picture …',
    away: 'Waiting for the device …',
    said: {
      answer: (label) => `This is ${label}`,
      unsure: 'Not sure',
      unknown: 'Unknown',
    },
    switch: 'Switch camera',
  },

  // Cameras that do not work.
  camera: {
    insecure: 'A browser gives its camera only to pages over https or on the device itself.',
    insecureDevice: 'So this page shows the camera of the device.',
    insecureAdvice: 'Start the server with --tls, give it a camera with --camera, or add pictures from files.',
    refused: 'The browser was not allowed to use the camera.',
    refusedAdvice: 'Allow it in the address bar and try again, or add pictures from files.',
    missing: 'No camera was found.',
    missingAdvice: 'Connect one and try again, or add pictures from files.',
    busy: 'The camera is in use by another program.',
    busyAdvice: 'Close the other program and try again.',
    failed: 'The camera could not be started.',
    failedAdvice: 'Try again, or add pictures from files.',
    lost: 'The camera was disconnected.',
    lostAdvice: 'Connect it again and try again.',
    useDevice: 'Use the device’s camera',
    useBrowser: 'Use this browser’s camera',
    deviceLost: (problem) => problem || 'The device’s camera gives no pictures.',
    addFiles: 'Add pictures',
  },

  // Tiles of things.
  tiles: {
    section: 'Things it knows',
    summary: (known, free) =>
      known ? `${number.format(known)} · room for ${number.format(free)} more` : `room for ${classes(free)}`,
    fresh: 'New thing',
    freshHint: 'Tap to name and teach, or hold to teach now',
    add: 'Add pictures',
    hint: 'Tap to teach, hold to teach as long as you hold. Enter and the space bar do the same.',
    teach: (label) => `Teach ${label} more`,
    describe: (label, n) => `${label}, ${pictures(n)}. Teach it more.`,
    more: (label) => `Options for ${label}`,
    empty: 'not taught yet',
    full: 'There is no room for another thing. Forget one that you no longer need.',
  },
  // The background: a place without a thing.
  background: {
    name: 'Nothing here',
    called: 'the empty place',
    teach: 'Teach the empty place',
    hint: '“Nothing here” is for a camera that stays where it is: teach it the empty place, so that the place is not taken for a thing.',
    lesson: 'Leave the place empty',
  },
  fresh: {
    title: 'What is it called?',
    name: 'Name',
    suggested: (n) => `Thing ${n}`,
    start: 'Start teaching',
    how: (seconds) => `Hold it in the square and turn it slowly. It takes at most ${count(seconds, { one: '# second', other: '# seconds' })}.`,
  },
  sheet: {
    title: (label) => label,
    rename: 'Rename',
    name: 'Name',
    forget: 'Forget',
    forgetHint: 'Removes it and frees its place. Undo brings it back.',
    pictures: (n) => `Look at its ${pictures(n)}`,
    notKept: 'Its pictures are not kept on the device, only what was learned from them.',
    kept: 'Pictures are kept on the device, next to what it learned.',
    taught: (n) => `Taught with ${pictures(n)}`,
  },

  // Teaching.
  teach: {
    title: (label) => `Teaching ${label}`,
    getReady: 'Show it in the square',
    left: (seconds) => count(seconds, { one: '# second left', other: '# seconds left' }),
    held: 'Release to finish',
    so: (n) => pictures(n),
    stop: 'Finish now',
    enough: 'That is enough',
    enoughHint: 'More pictures of the same would hardly help.',
    learning: 'Learning …',
    hints: {
      blurred: 'Blurred: hold still',
      dark: 'Too dark: more light',
      same: 'Always the same: turn it, move it',
    },
    good: 'Turn it slowly, show all sides',
    waiting: 'Waiting for the device. Your pictures are kept.',
    cancelled: (label) => `Cancelled. Nothing was learned about ${label}.`,
    lost: (label) => `The device lost the lesson about ${label}. Nothing was learned; teach it again.`,
    unplugged: (label) => `The camera was disconnected. Nothing was learned about ${label}.`,
    noFrames: 'No pictures arrived, so nothing was learned.',
    elsewhere: (label) => `Another page or camera is teaching ${label}.`,
  },

  // The result of a lesson.
  result: {
    title: (label) => `Learned ${label}`,
    time: (milliseconds) =>
      milliseconds < 10000
        ? `in ${decimals.format(Math.max(0.01, milliseconds / 1000))} s`
        : `in ${number.format(Math.round(milliseconds / 1000))} s`,
    fresh: (n) => `It is new, from ${pictures(n)}.`,
    more: (n, all) => `${count(n, { one: '# picture was added', other: '# pictures were added' })}; it has ${number.format(all)} now.`,
    clear: 'It is easy to tell from the other things.',
    confused: 'It could be confused with',
    confusedShare: (value) => `${share.format(value)} on average`,
    confusedHint: 'Teach both once more, from the same side and in the same light.',
    undo: 'Undo',
    rename: 'Rename',
    again: 'Teach it more',
    undone: (change) => (change ? `Undone: ${change}` : 'Undone.'),
    imported: (n) => `Learned ${classes(n)}.`,
  },
  said: {
    forgot: (label) => `Forgot ${label}.`,
    renamed: (before, after) => `${before} is now called ${after}.`,
    moved: (n, label) => `Moved ${pictures(n)} to ${label}.`,
    deleted: (n) => `Deleted ${pictures(n)}.`,
  },

  // The tray.
  tray: {
    section: 'Not recognised',
    hint: 'Pictures that it did not recognise. Choose some, then tap what they show.',
    empty: 'Pictures that it does not recognise appear here, so that you can say what they are.',
    unknown: 'unknown',
    unsure: (label) => (label ? `${label}?` : 'unsure'),
    picture: (kind, position) => `Picture ${position}: ${kind}`,
    chosen: (n) => `${pictures(n)} chosen. What is it?`,
    fresh: 'New thing',
    drop: 'Discard',
  },

  // Adding from files.
  add: {
    title: 'Add pictures',
    drop: 'Drop to add',
    dropHint: 'Pictures, videos, folders, or a Teachable Machine project',
    choose: 'Pictures or videos',
    chooseFolder: 'A folder',
    explain: 'Choose pictures and videos of one thing, a folder with a subfolder for each thing, or a project (.tm, .zip) of Teachable Machine. You can also drop them anywhere on this page.',
    reading: 'Looking at the files …',
    preview: 'This will be learned',
    name: 'Name',
    include: (label) => `Learn ${label}`,
    contents: (n, films) =>
      [n && pictures(n), films && count(films, { one: '# video', other: '# videos' })].filter(Boolean).join(', '),
    known: 'adds to what it knows',
    fresh: 'new',
    start: (n) => `Learn ${classes(n)}`,
    tooMany: (n, free) => `That is ${classes(n)} too many: there is room for ${count(free, { one: '# new one', other: '# new ones' })}. Leave some out, or forget some that it knows.`,
    unnamed: 'Give each of them a name.',
    progress: (label, done, all) => `${label}: ${number.format(done)} of ${pictures(all)}`,
    progressFilm: (label, done) => `${label}: ${pictures(done)}`,
    learning: (label) => `${label}: learning …`,
    skipped: (n) => count(n, {
      one: '# file was left out, because this browser cannot read it as a picture or video:',
      other: '# files were left out, because this browser cannot read them as pictures or videos:',
    }),
    nothing: 'There is no picture or video in it that this browser can read.',
    badZip: (name) => `${name} cannot be read: it is damaged, or not a zip file or project with pictures.`,
    stopped: (learned) => (learned.length ? `Stopped. Learned so far: ${list(learned)}.` : 'Stopped. Nothing was learned.'),
    unreadable: (label) => `No picture of ${label} could be read, so it was not learned.`,
  },

  // Pictures that are kept.
  kept: {
    title: (label) => `Pictures of ${label}`,
    empty: 'No pictures are kept of it.',
    hint: 'After deleting or moving pictures, choose “Learn again” for each thing concerned. Until then, it answers as before.',
    picture: (position) => `Picture ${position}`,
    chosen: (n) => `${number.format(n)} chosen`,
    move: 'Move to …',
    relearn: 'Learn again',
  },

  // Diagnosis.
  check: {
    title: 'Check-up',
    reading: 'Looking at what it has learned …',
    fine: 'Nothing to improve was found.',
    intro: 'What to improve, most urgent first:',
    lookedAt: (what) => `Looked at ${what}.`,
  },

  // Downloads.
  files: {
    title: 'Save and load',
    state: 'What it learned',
    stateHint: 'A backup, or for another device with the same bundle (.zip)',
    bundle: 'A bundle that knows it already',
    bundleHint: 'New devices start with what this one has learned (.zip)',
    model: 'A plain model',
    modelHint: 'For other programs; it cannot learn any more (.zip with .tflite)',
    float32: 'float32',
    int8: 'int8',
    noModel: 'A plain model needs the extra host on the device: pip install \'lrtflite[host]\'',
    load: 'Load what a device learned',
    loadHint: 'Replaces everything that this device has learned. What it had learned before stays in another folder on the device.',
    choose: 'Choose a file',
    making: 'Making the file …',
    loaded: (aside) => (aside ? `Loaded. The old state is in the folder ${aside} on the device; delete it there when you no longer need it.` : 'Loaded.'),
    save: 'Save',
    names: { state: 'lrtflite-state.zip', bundle: 'lrtflite-bundle.zip', model: (form) => `lrtflite-model-${form}.zip` },
  },

  // Settings.
  settings: {
    title: 'Settings',
    seconds: 'Seconds of teaching',
    fps: 'Pictures a second while teaching',
    camera: 'Camera',
    automatic: 'Automatic',
    front: 'Front camera',
    back: 'Back camera',
    device: 'The device’s camera',
    numbered: (n) => `Camera ${n}`,
    mirror: 'Mirror the picture on the screen',
    about: (name, version) => `${name} ${version}`,
    bundle: (bundle) => `${bundle.network} · ${bundle.strategy} · ${bundle.input_size} × ${bundle.input_size} pixels · ${number.format(bundle.slots)} places`,
    stateFolder: (folder) => `State: ${folder}`,
    kept: 'Pictures are kept on the device.',
    notKept: 'Pictures are not kept; start the server with --keep-pictures to keep them.',
  },

  // The token.
  token: {
    title: 'This device asks for its token',
    explain: 'The terminal in which the server was started shows it, with a QR code.',
    name: 'Token',
    wrong: 'This token is not the right one.',
    start: 'Continue',
  },

  // Everything that goes wrong.
  trouble: {
    offline: 'The device does not answer. Trying again …',
    online: 'The device answers again.',
    crowded: 'Too many pages are open, or too many tokens were wrong. Wait a minute, then reload.',
    replaced: 'The device now runs another bundle. Reloading …',
    full: 'The disk of the device is full. Nothing was lost, and nothing was learned.',
    busy: 'Something else is being taught right now. Wait until it has finished.',
    large: 'This is too large for the device.',
    missing: 'It is no longer there. Reload the page if this happens again.',
    absent: 'The device cannot do this.',
    camera: 'The device’s camera gives no pictures.',
    refused: 'The device refused this.',
    unexpected: (what) => `Something went wrong in the page: ${what}`,
    dismiss: 'Dismiss',
  },
};
