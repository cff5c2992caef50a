"""The generated shop's attribute words, written by hand: what a listing says, and what people search for it.

An entry ``Crimson=red/crimson`` reads: the listing says "Crimson", the queries say "red" (mostly) or "crimson".
Without ``=`` the query is the listing's word in lower case. Earlier entries and earlier queries are more common.
Nothing here names a real product, company or person.
"""

COLOURS = {
    "fashion": "Black, White, Navy=navy/navy blue/dark blue, Grey=grey/gray, Red, Beige,"
    " Olive=olive green/khaki/green, Charcoal=dark grey/charcoal/grey, Royal Blue=blue/royal blue,"
    " Burgundy=burgundy/wine red/maroon, Blush=pink/light pink/blush, Chocolate=brown/dark brown,"
    " Camel=tan/camel/light brown, Crimson=red/crimson, Forest Green=dark green/green, Ivory=cream/off white/ivory,"
    " Sky Blue=light blue/baby blue, Mustard=yellow/mustard, Lavender=purple/lilac/lavender, Teal=teal/turquoise,"
    " Coral=coral/orange",
    "tech": "Black, White, Silver, Space Grey=grey/space grey, Midnight=black/dark blue/midnight,"
    " Graphite=grey/graphite, Rose Gold=rose gold/pink, Ocean Blue=blue, Ruby=red, Mint=mint green/green,"
    " Champagne=gold",
    "home": "White, Grey=grey/gray, Beige, Anthracite=dark grey/black/anthracite, Sage=sage green/green,"
    " Ivory=cream/off white, Navy=navy/dark blue, Blush=pink/blush, Terracotta=terracotta/orange/rust,"
    " Emerald=green/emerald green, Mustard=yellow/mustard yellow, Taupe=taupe/brown, Black,"
    " Dusty Blue=blue/light blue",
    "sport": "Black, Blue, Red, Grey=grey/gray, White, Lime=green/neon green/lime, Neon Yellow=yellow/neon, Orange,"
    " Purple, Turquoise=turquoise/teal, Pink, Navy=navy/dark blue",
    "outdoor": "Black, Olive=green/olive green, Khaki=khaki/beige, Forest Green=dark green/green, Grey=grey/gray,"
    " Orange, Slate Blue=blue, Sand=beige/sand, Rust=orange/rust, Brown, Red",
    "bright": "Blue, Red, Pink, Yellow, Green, Purple, Orange, Turquoise=turquoise/teal, White,"
    " Rainbow=rainbow/multicolour/colourful, Pastel Mix=pastel",
    "pastel": "White, Blush=pink/light pink, Baby Blue=light blue/baby blue, Mint=mint green/mint,"
    " Lilac=purple/lilac, Cream=cream/off white, Grey=grey/gray, Peach=peach/orange, Sage=sage green/green,"
    " Vanilla=yellow/light yellow",
    "kitchen": "Black, Stainless=silver/steel, White, Red, Cream=cream/retro cream, Copper=copper/rose gold,"
    " Grey=grey/gray, Sage=green/sage green, Pastel Blue=blue/light blue, Matte Black=black/matte black",
    "precious": "Silver=silver/silver tone, Gold=gold/golden, Rose Gold=rose gold/pink gold, Black,"
    " Clear=clear/transparent, Smoky Grey=grey/smoky, Emerald=green/emerald, Sapphire=blue/sapphire,"
    " Amber=amber/orange",
    "tool": "Black, Red, Blue, Yellow, Grey=grey/gray, Orange, Green, Anthracite=dark grey/black",
    "wood": "Natural=natural/wood, Sunburst=sunburst/brown, Black, White, Cherry Red=red/cherry,"
    " Mahogany=brown/mahogany, Walnut Brown=dark brown/brown, Sky Blue=blue/light blue",
    "makeup": "Rosewood=pink/rosewood, Nude=nude/beige, Cherry Red=red/cherry, Berry=purple/berry/dark red,"
    " Coral=coral/orange, Mocha=brown/mocha, Peach=peach/light pink, Fuchsia=pink/fuchsia, Caramel=brown/caramel,"
    " Ivory=light/fair",
    "party": "Gold=gold/golden, Silver, Rose Gold=rose gold/pink, Red, Blue, Black, Pastel Mix=pastel, Green,"
    " White, Rainbow=rainbow/multicolour, Purple",
    "ink": "Black, Black and Colour=colour/multipack, Cyan=cyan/blue, Magenta=magenta/pink, Yellow",
}

SIZES = {
    "shoe": "Size 42, Size 39, Size 41, Size 40, Size 43, Size 38, Size 44, Size 37, Size 45, Size 36, Size 46,"
    " Size 47",
    "clothing": "Size M=medium/size m, Size L=large/size l, Size S=small/size s, Size XL=xl/extra large,"
    " Size XXL=xxl/plus size, Size XS=xs/extra small, Size 3XL=3xl/plus size, Size 4XL=4xl",
    "waist": "W32=32 waist/w32, W34=34 waist/w34, W30=30 waist/w30, W36=36 waist/w36, W28=28 waist/w28,"
    " W38=38 waist/plus size, W40=40 waist/plus size, W26=26 waist/petite",
    "litres-bag": "25 L=25l/25 litres, 20 L=20l/20 litres, 40 L=40l/40 litres, 15 L=15l/small, 30 L=30l/30 litres,"
    " 55 L=55l/large, 10 L=10l/mini, 90 L=90l/extra large",
    "litres": "1.5 L=1.5 litre, 1.7 L=1.7 litre, 2 L=2 litre, 3 L=3 litre, 5 L=5 litre, 1.2 L=1.2 litre,"
    " 0.8 L=small, 4.5 L=4.5 litre",
    "litres-drink": "1 L=1 litre, 6 x 1 L=6 pack, 0.75 L=750 ml, 12 x 1 L=bulk, 3 L=3 litre",
    "millilitres": "500 ml, 750 ml, 350 ml, 1000 ml=1 litre, 250 ml, 400 ml, 600 ml, 1500 ml=1.5 litre, 300 ml",
    "millilitres-small": "50 ml, 100 ml, 30 ml, 200 ml, 250 ml, 75 ml, 15 ml=travel size, 400 ml=xxl",
    "grams": "250 g, 500 g, 100 g, 200 g, 1000 g=1 kg, 50 g, 300 g, 750 g, 400 g, 80 g",
    "kilos": "5 kg, 10 kg, 2 kg, 3 kg, 8 kg, 12 kg, 20 kg, 1 kg, 15 kg, 25 kg, 7 kg",
    "kilos-large": "up to 180 kg=180 kg, up to 150 kg=150 kg, up to 200 kg=200 kg/heavy people",
    "centimetres": "28 cm, 24 cm, 20 cm, 30 cm, 26 cm, 40 cm, 35 cm, 45 cm, 15 cm, 60 cm, 32 cm",
    "centimetres-large": "120 x 80 cm=120x80, 160 x 90 cm=160x90, 100 x 60 cm=100x60, 140 x 200 cm=140x200, 180 cm,"
    " 80 x 40 cm=80x40, 150 cm, 200 x 100 cm=200x100, 90 cm, 240 cm, 60 x 60 cm=60x60, 305 cm",
    "millimetres": "40 mm, 42 mm, 36 mm, 44 mm, 38 mm, 32 mm, 22 mm, 20 mm",
    "millimetres-small": "4 mm, 5 mm, 3.5 mm, 6 mm, 8 mm, 3 mm, 10 mm, 2.5 mm",
    "metres": "2 m, 3 m, 5 m, 10 m, 1 m, 1.5 m, 20 m, 15 m, 2.4 m, 30 m, 4 m",
    "litres-large": "30 L=30 litre, 20 L=20 litre, 50 L=50 litre/large, 40 L=40 litre, 10 L=10 litre/small,"
    " 60 L=60 litre, 90 L=90 litre/xxl",
    "watts-light": "9 W=9 watt, 12 W=12 watt, 24 W=24 watt, 40 W=40 watt, 6 W=6 watt, 60 W=60 watt/bright,"
    " 18 W=18 watt",
    "watts-charger": "20 W=20 watt, 65 W=65 watt, 30 W=30 watt, 45 W=45 watt, 100 W=100 watt, 15 W=15 watt",
    "metres-small": "3 m, 2 m, 2.5 m, 4 m, 1.8 m, 3.5 m, 5 m",
    "centimetres-pan": "28 cm, 24 cm, 20 cm, 26 cm, 30 cm, 32 cm, 18 cm, 16 cm=16 cm/small",
    "centimetres-tall": "180 cm, 150 cm, 120 cm, 210 cm, 240 cm, 90 cm, 305 cm",
    "millimetres-lens": "50 mm, 35 mm, 85 mm, 24-70 mm, 70-200 mm, 18-55 mm, 100 mm, 16 mm",
    "millimetres-iron": "32 mm, 25 mm, 19 mm, 38 mm",
    "millimetres-wiper": "600 mm, 650 mm, 530 mm, 450 mm, 400 mm, 700 mm",
    "inches": "11 Inch, 10 Inch, 12 Inch, 13 Inch, 8 Inch, 18 Inch, 14 Inch",
    "inches-large": "27 Inch, 24 Inch, 32 Inch, 34 Inch=34 inch/ultrawide, 22 Inch, 49 Inch=49 inch/super wide",
    "inches-tv": "55 Inch, 65 Inch, 43 Inch, 50 Inch, 75 Inch, 32 Inch, 85 Inch=85 inch/huge, 24 Inch=24 inch/small",
    "wheel": "28 Inch, 29 Inch, 26 Inch, 27.5 Inch, 24 Inch, 20 Inch, 16 Inch",
    "watts": "1000 W=1000 watt, 800 W=800 watt, 1500 W=1500 watt, 2000 W=2000 watt, 600 W=600 watt,"
    " 1200 W=1200 watt, 2400 W=2400 watt",
    "volts": "18 V=18v/18 volt, 12 V=12v/12 volt, 20 V=20v/20 volt, 230 V=corded/230v, 36 V=36v/36 volt",
    "lumens": "5000 Lumens, 9000 Lumens=9000 lumens/bright, 3000 Lumens, 12000 Lumens=12000 lumens/daylight",
    "milliamps": "10000 mAh, 20000 mAh, 5000 mAh, 26800 mAh, 15000 mAh, 1200 mAh, 30000 mAh",
    "milliamps-small": "1200 mAh, 1600 mAh, 2000 mAh, 1050 mAh, 2400 mAh",
    "gigabytes": "256 GB=256gb, 128 GB=128gb, 512 GB=512gb, 1 TB=1tb, 64 GB=64gb, 32 GB=32gb, 2 TB=2tb, 16 GB=16gb",
    "pack": "2 Pack=2 pack/set of 2, 3 Pack=3 pack/set of 3, 4 Pack=4 pack/set of 4, 10 Pack=10 pack,"
    " 6 Pack=6 pack/set of 6, 20 Pack=20 pack/bulk, 50 Pack=50 pack/bulk, 12 Pack=12 pack, 100 Pack=100 pack/bulk,"
    " 5 Pack=5 pack",
    "pack-small": "2 Pack=2 pack/set of 2, 4 Pack=4 pack/set of 4, 6 Pack=6 pack/set of 6, 3 Pack=3 pack/set of 3",
    "pieces": "6 Pieces=6 piece/set of 6, 4 Pieces=4 piece/set of 4, 12 Pieces=12 piece/set of 12,"
    " 24 Pieces=24 piece, 16 Pieces=16 piece, 8 Pieces=8 piece, 36 Pieces=36 piece, 48 Pieces=48 piece,"
    " 2 Pieces=2 piece/pair, 100 Pieces=100 piece/large set",
    "pieces-puzzle": "1000 Pieces, 500 Pieces, 2000 Pieces, 100 Pieces=100 pieces/kids, 1500 Pieces, 5000 Pieces,"
    " 200 Pieces",
    "persons": "2 Person=2 person/two man, 4 Person=4 person/family, 3 Person=3 person, 1 Person=1 person/solo,"
    " 6 Person=6 person/large, 8 Person=8 person",
    "seats": "3 Seater=3 seater/three seat, 2 Seater=2 seater/two seat, 4 Seater=4 seater, Corner=corner/l shaped,"
    " Single",
    "slices": "2 Slice=2 slice, 4 Slice=4 slice",
    "steps": "3 Step=3 step, 4 Step=4 step, 2 Step=2 step/small, 5 Step=5 step, 6 Step=6 step/tall, 7 Step=7 step",
    "bed": "Double=double/140x200, King=king size/180x200, Single=single/90x200, Queen=queen size/160x200,"
    " Super King=super king/200x200, Twin=twin",
    "bed-baby": "60 x 120 cm=60x120, 70 x 140 cm=70x140, 50 x 90 cm=50x90/small",
    "ages": "Ages 3+=age 3/3 year old, Ages 5+=age 5/5 year old, Ages 8+=age 8/8 year old,"
    " Ages 1+=age 1/1 year old, Ages 6+=age 6/6 year old, Ages 2+=age 2/2 year old, Ages 10+=age 10/10 year old,"
    " Ages 14+=teens/age 14",
    "months": "0-3 Months=0-3 months/newborn, 3-6 Months=3-6 months, 6-12 Months=6-12 months,"
    " 12-18 Months=12-18 months/one year old, 18-24 Months=18-24 months",
    "dog": "Medium, Large=large/large breed, Small=small/small breed, Extra Large=xl/giant breed, Extra Small=xs/puppy",
    "paper": "A5, A4, A6=a6/pocket size, A3, B5",
    "ring": "Size 54, Size 52, Size 56, Size 50, Size 58, Size 60, Size 48, Size 62",
    "dioptres": "+1.5=1.5, +2.0=2.0, +1.0=1.0, +2.5=2.5, +3.0=3.0, +3.5=3.5",
    "keys": "88 Keys=88 key, 61 Keys=61 key, 49 Keys=49 key, 76 Keys=76 key, 25 Keys=25 key/mini",
    "instrument": "Full Size, Three Quarter=three quarter/kids size, Half Size,"
    " Quarter Size=quarter size/beginner size",
    "capsules": "120 Capsules=120 capsules/4 months, 60 Capsules, 180 Capsules, 90 Capsules,"
    " 365 Tablets=365 tablets/year supply",
    "loads": "40 Loads=40 washes, 80 Loads=80 washes/xxl, 20 Loads=20 washes, 100 Loads=100 washes/bulk",
    "ounces": "12 oz, 10 oz, 14 oz, 16 oz, 8 oz=8 oz/kids",
}

AUDIENCES = {
    "adult": "Men's=mens/gents/male, Women's=womens/ladies/female, Unisex",
    "everyone": "Women's=womens/ladies/female, Men's=mens/gents/male, Boys'=boys/kids/childrens,"
    " Girls'=girls/kids/childrens, Unisex",
    "women": "Women's=womens/ladies/female, Girls'=girls/teenage",
    "men": "Men's=mens/gents/male",
    "kids": "Kids'=kids/childrens, Girls'=girls/kids, Boys'=boys/kids, Toddler=toddler/baby",
    "kids-adult": "Adult=adult/grown up, Junior=junior/kids/childrens, Women's=womens/ladies, Men's=mens/gents",
}

FOR_AUDIENCE = {
    "Men's": "men/him/husband/dad/boyfriend",
    "Women's": "women/her/wife/mum/girlfriend",
    "Unisex": "men and women/couples",
    "Boys'": "boys/son/nephew",
    "Girls'": "girls/daughter/niece",
    "Kids'": "kids/children/grandchildren",
    "Toddler": "toddlers/little ones",
    "Adult": "adults/grown ups",
    "Junior": "kids/children/beginners",
}
"""How an audience reads after "for"."""

PRINTS = (
    "Solid=plain/solid, Striped=striped/stripe, Floral=floral/flower, Checked=checked/plaid/tartan,"
    " Polka Dot=polka dot/dotted, Animal Print=leopard/animal print, Geometric, Camouflage=camo/camouflage,"
    " Tropical=tropical/palm, Marble=marble/marbled"
)

TIERS = (
    "Everyday=good/everyday, Value=cheap/affordable/budget, Premium=best/high quality/premium,"
    " Basic=cheap/simple/basic, Deluxe=luxury/high end/expensive, Classic=classic/timeless, Pro=professional/pro"
)

FITS = {
    "phone": "Zephra 12, Zephra 12 Max, Kolvi Note 8, Zephra 11, Ondero P40, Kolvi A5, Taruno Edge 3,"
    " Ondero P30 Lite, Zephra SE, Kolvi Note 9, Miruvo X2, Taruno Mini, Miruvo X3 Pro, Pelvano 7",
    "tablet": "Zephra Tab 10, Kolvi Pad 11, Ondero Slate 8, Zephra Tab Air, Taruno Pad S, Miruvo Tab 12",
    "laptop": "Varikon 15, Dolmera Air 13, Varikon 14 Pro, Tesqua Book, Dolmera Studio, Holvex 17, Tesqua Flex",
    "camera": "Lumora A6, Optavia D80, Lumora A7, Crestol M5, Optavia Z1, Crestol M10, Finderra T2",
    "printer": "Inkara 2700, Paprino MX5, Inkara 3100, Tonera L20, Paprino MX7, Tonera L35, Quilla Jet 4",
    "car": "Orvane Tiro, Belmara Cityline, Orvane Nomad, Sendaro 3, Tolvik Wagon, Belmara Cross, Sendaro 5,"
    " Kaldera One, Tolvik Sport, Rivanto Van",
}
"""Invented devices that accessories fit."""

SAID_DIFFERENTLY = (
    # materials
    "Synthetic Leather=synthetic leather/vegan leather, Faux Leather=faux leather/vegan leather/fake leather,"
    " Leather=leather/real leather, Stainless Steel=stainless steel/metal/steel, Oak=oak/wooden/solid wood,"
    " Walnut=walnut/wooden/dark wood, Pine=pine/wooden, Beech Wood=wooden/beech, Mango Wood=wooden/mango wood,"
    " Acacia Wood=wooden/acacia, Teak=teak/wooden, Ash Wood=wooden/ash, Olive Wood=wooden/olive wood,"
    " Maple=maple/wooden, MDF=mdf/wood look, Metal=metal/steel, Steel=steel/metal,"
    " Aluminium=aluminium/aluminum/metal, Organic Cotton=organic/organic cotton, Terry Cotton=terry/cotton,"
    " Merino Wool=merino/wool, Lambswool=wool/lambswool, Carbon Fibre=carbon/carbon fiber,"
    " Recycled Polyester=recycled/sustainable, Recycled Down=recycled/down, Recycled Paper=recycled/eco friendly,"
    " Memory Foam=memory foam/foam, Polycarbonate=hard shell/polycarbonate, Natural Rubber=natural rubber/rubber,"
    " Gold Plated=gold plated/gold, Sterling Silver=sterling silver/925 silver, Stoneware=stoneware/ceramic,"
    " Damascus Steel=damascus/japanese steel, Bamboo Jersey=bamboo, Boucle=boucle/teddy,"
    " Tempered Glass=tempered glass/glass, Soy Wax=soy/vegan wax, Rattan=rattan/wicker, Faux Fur=fluffy/faux fur,"
    " Synthetic Bristle=synthetic/vegan, Plush=plush/fluffy, Vinyl=vinyl/plastic, Chicken=chicken/poultry,"
    # features
    " Waterproof=waterproof/rainproof/water resistant, Lightweight=lightweight/light,"
    " Ultralight=ultralight/super light, Non-Slip=non slip/anti slip/grippy, Wireless=wireless/bluetooth/cordless,"
    " Cordless=cordless/battery powered/wireless, Rechargeable=rechargeable/usb,"
    " Foldable=foldable/folding/collapsible, Breathable=breathable/airy, Insulated=insulated/thermal,"
    " Non-Stick=non stick/nonstick, Noise Cancelling=noise cancelling/noise canceling/anc, Quiet=quiet/silent,"
    " Heavy Duty=heavy duty/strong/industrial, Ergonomic=ergonomic/comfortable,"
    " Eco Friendly=eco friendly/sustainable/green, Washable=washable/machine washable,"
    " Cushioned=cushioned/comfortable, Compact=compact/small/mini, Portable=portable/travel,"
    " Handmade=handmade/artisan, Beginner=beginner/starter/for beginners, Shockproof=shockproof/rugged,"
    " Fast Charging=fast charging/quick charge, Long Battery=long battery life,"
    " Adjustable=adjustable/height adjustable, Solar Powered=solar, Scandinavian=scandinavian/nordic,"
    " Rustic=rustic/farmhouse, Hypoallergenic=hypoallergenic/allergy friendly,"
    " Odour Control=odour control/smell free, PFAS Free=pfas free/non toxic, Anti Ageing=anti aging/wrinkle,"
    " Sugar Free=sugar free/no sugar, High Protein=high protein/protein rich, Waterproof Cover=waterproof,"
    " Water Repellent=water repellent/waterproof, Warm=warm/cosy, Wide Fit=wide fit/wide feet,"
    " Dishwasher Safe=dishwasher safe/dishwasher proof, Energy Saving=energy saving/energy efficient,"
    " Digital=digital/electronic, App Controlled=smart/app controlled, Smart=smart/wifi, HEPA Filter=hepa/allergy,"
    " Blackout=blackout/darkening, Leakproof=leakproof/spill proof, Reclining=reclining/adjustable,"
    " Refurbished=refurbished/used, Backlit=backlit/illuminated, Bagless=bagless/without bag,"
    " Durable=durable/sturdy/indestructible, With Storage=with storage/storage, Easy Assembly=easy assembly,"
    " Weatherproof=weatherproof/all weather, Fragrance Free=fragrance free/unscented, Stretch=stretch/stretchy,"
    " Oversized=oversized/baggy, Vintage=vintage/retro/antique, Modern=modern/contemporary"
)
"""Materials and features whose queries differ from the listing's words; all others are searched as they stand."""

LINES = (
    "Aero Alder Anchor Arc Aspen Atlas Aurora Basin Beacon Birch Bloom Bolt Breeze Bridge Canyon Cascade Cedar"
    " Cinder Circuit Cirrus Cliff Clover Coast Comet Copper Cove Crest Current Dawn Delta Drift Dune Dusk Echo"
    " Ember Falcon Fern Fjord Flint Flow Forge Frost Gale Glacier Glade Glide Grove Harbor Haven Heather Heron"
    " Hollow Horizon Indigo Inlet Iris Isle Ivy Jasper Juniper Kestrel Kite Lagoon Lark Latitude Linden Lumen Lynx"
    " Maple Marlin Meadow Meridian Mesa Mirage Mistral Moss Nimbus Noble Nook Oasis Onyx Opal Orbit Orchid Otter"
    " Pace Path Pebble Petal Pilot Pine Pivot Plume Prairie Prism Pulse Quarry Quartz Quest Quill Rapid Raven Reef"
    " Ridge Ripple River Robin Rove Rowan Sable Saga Sail Savanna Sierra Slate Sonnet Sparrow Spire Spruce Stride"
    " Summit Swift Tempo Terra Thicket Thistle Tide Timber Topaz Trail Tundra Twine Vale Vantage Verve Vista Voyage"
    " Wander Wave Willow Wren Zenith Zest"
)
"""Product lines, common nouns: a line is known by its brand and one of these."""
